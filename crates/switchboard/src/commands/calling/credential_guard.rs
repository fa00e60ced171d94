//! Keeps stored credentials, the token of `auth login` and those in `agents.yaml`, on the agent's own host. Only a typed
//! `--endpoint` may send them elsewhere: one that a variable or a file sets is easily forgotten.

use switchboard_client::Peer;
use url::Url;

use crate::cli::CallFlags;
use crate::cli::settings::{Settings, Source};
use crate::commands::calling::{Failure, sanitize};

/// Decides whether an agent's stored credentials may be sent.
pub(super) struct CredentialGuard {
    /// Another host that gets the requests, and where that is set.
    elsewhere: Option<(String, String)>,
}

impl CredentialGuard {
    pub(super) fn new(peer: &Peer, flags: &CallFlags) -> Result<Self, Failure> {
        let settings = Settings::load(flags.config.as_deref())?;
        let endpoint = flags.endpoint.as_ref().filter(|endpoint| origin(endpoint) != origin(&peer.url));
        let elsewhere = endpoint.and_then(|endpoint| {
            let set_by = match settings.source(&flags.origins, "endpoint", "A2ACLI_ENDPOINT") {
                Source::Flag => return None,
                Source::Variable | Source::Usual => "the variable A2ACLI_ENDPOINT".to_owned(),
                Source::File(file) => file.path.display().to_string(),
            };
            Some((host(endpoint), set_by))
        });
        Ok(Self { elsewhere })
    }

    pub(super) fn stored(&self, whose: &str) -> Result<(), Failure> {
        let Some((host, set_by)) = &self.elsewhere else { return Ok(()) };
        let message = format!(
            "{set_by} sends the requests to {}, which is not the agent's host: {whose} is not for it",
            sanitize::line(host)
        );
        Err(Failure::usage(message, "if it is meant for that host, type --endpoint with its URL"))
    }
}

fn origin(url: &str) -> Option<url::Origin> {
    let url = Url::parse(url).or_else(|_| Url::parse(&format!("http://{url}"))).ok()?;
    Some(url.origin())
}

/// The host and port of an address; what is none stays as it is.
fn host(address: &str) -> String {
    let url = Url::parse(address).ok().filter(Url::has_host);
    match url.as_ref().and_then(|url| Some((url.host_str()?, url.port()))) {
        Some((host, Some(port))) => format!("{host}:{port}"),
        Some((host, None)) => host.to_owned(),
        None => address.split('/').next().unwrap_or_default().to_owned(),
    }
}
