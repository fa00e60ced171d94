//! Which credentials may go where. A `.env` that was merely found may have come with somebody else's files: what it says of
//! where requests go, or of how the server is checked, is heeded, but no credentials from anywhere else go along. And those
//! that belong to one agent go to its host, unless somebody has typed another one.

use std::path::PathBuf;

use switchboard_client::Peer;
use url::Url;

use crate::cli::settings::{Settings, Source};
use crate::cli::{CallFlags, Origins};
use crate::commands::calling::{Failure, clean};

/// Settings that say where requests go, what they look like on the way, and how the server is checked.
const DECISIVE: [(&str, &str); 7] = [
    ("endpoint", "A2ACLI_ENDPOINT"),
    ("agent_card", "A2ACLI_AGENT_CARD"),
    ("tenant", "A2ACLI_TENANT"),
    ("trust_card_url", "A2ACLI_TRUST_CARD_URL"),
    ("insecure", "A2ACLI_INSECURE"),
    ("ca", "A2ACLI_CA"),
    ("service_parameters", "A2ACLI_SVC_PARAM"),
];

/// Says which credentials may be sent.
pub(super) struct Guard {
    settings: Settings,
    origins: Origins,
    hearsay: Option<Hearsay>,
    /// The host that gets the requests and is not the agent's, and who says so.
    elsewhere: Option<(String, String)>,
}

/// What a file says that nobody has named.
struct Hearsay {
    file: PathBuf,
    name: &'static str,
    host: String,
}

impl Guard {
    pub(super) fn new(agent: &str, peer: &Peer, flags: &CallFlags) -> Result<Self, Failure> {
        let settings = Settings::load(flags.config.as_deref())?;
        let counts = |id: &str| match id {
            "agent_card" => flags.agent_card.as_deref() == Some(agent),
            "trust_card_url" => flags.trust_card_url,
            "insecure" => flags.insecure,
            _ => true,
        };
        let called = flags.endpoint.as_ref().unwrap_or(&peer.url);
        let said = |(id, name): (&str, &'static str)| match settings.source(&flags.origins, id, name) {
            Source::File(file) if file.is_found && counts(id) => {
                Some(Hearsay { file: file.path.clone(), name, host: host(called) })
            }
            _ => None,
        };
        let hearsay = DECISIVE.into_iter().find_map(said);
        let endpoint = flags.endpoint.as_ref().filter(|endpoint| origin(endpoint) != origin(&peer.url));
        let elsewhere = endpoint.and_then(|endpoint| {
            let said_by = match settings.source(&flags.origins, "endpoint", "A2ACLI_ENDPOINT") {
                Source::Flag => return None,
                Source::Variable | Source::Usual => "the variable A2ACLI_ENDPOINT".to_owned(),
                Source::File(file) => file.path.display().to_string(),
            };
            Some((host(endpoint), said_by))
        });
        Ok(Self { settings, origins: flags.origins.clone(), hearsay, elsewhere })
    }

    /// Whether a flag's value may be sent, which whoever decides where it goes may have said as well.
    pub(super) fn setting(&self, id: &str, name: &str) -> Result<(), Failure> {
        let Some(hearsay) = &self.hearsay else { return Ok(()) };
        match self.settings.source(&self.origins, id, name) {
            Source::File(file) if file.path == hearsay.file => Ok(()),
            _ => Err(hearsay.refusal(name)),
        }
    }

    /// The same for a setting that no flag has for its variable.
    pub(super) fn value(&self, name: &str) -> Result<(), Failure> {
        let Some(hearsay) = &self.hearsay else { return Ok(()) };
        let is_variable = std::env::var_os(name).is_some_and(|value| !value.is_empty());
        match self.settings.get(name) {
            Some((_, file)) if !is_variable && file.path == hearsay.file => Ok(()),
            _ => Err(hearsay.refusal(name)),
        }
    }

    /// Whether something may be sent that was typed.
    pub(super) fn typed(&self, flag: &str) -> Result<(), Failure> {
        self.hearsay.as_ref().map_or(Ok(()), |hearsay| Err(hearsay.refusal(flag)))
    }

    /// Whether something may be sent that was kept for this agent.
    pub(super) fn kept(&self, whose: &str) -> Result<(), Failure> {
        self.typed(whose)?;
        let Some((host, said_by)) = &self.elsewhere else { return Ok(()) };
        let message = format!(
            "{said_by} sends the requests to {}, which is not the agent's host: {whose} is not for it",
            clean::line(host)
        );
        Err(Failure::usage(message, "if it is meant for that host, type --endpoint with its URL"))
    }
}

impl Hearsay {
    fn refusal(&self, whose: &str) -> Failure {
        let (file, name, host) = (self.file.display(), self.name, clean::line(&self.host));
        let message = format!(
            "{file} was found here and sets {name}, so that {host} would get what is sent: {whose}, which that file does not hold, is not sent on its word"
        );
        let file = clean::word(&self.file.to_string_lossy());
        Failure::usage(
            message,
            format!("if you trust it, name it with --config {file}, or set {name} in the environment"),
        )
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
