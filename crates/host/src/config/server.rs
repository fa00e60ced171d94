//! `server`: where Switchboard listens and what it calls itself.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::address::{BaseUrl, BindAddress, Network, WebOrigin};
use crate::config::agent_name::AgentName;
use crate::config::section::Section;
use crate::config::time_span::TimeSpan;
use crate::section_keys;

/// The HTTP server.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Server {
    /// Address to listen on.
    ///
    /// Anything but a loopback address needs at least one key.
    pub bind: BindAddress,
    /// Public address.
    ///
    /// What agent cards say in front of every path. Without it they say `http://`, with TLS `https://`, and the address
    /// listened on.
    pub public_base_url: Option<BaseUrl>,
    /// Address at which agents elsewhere reach this server, where that is not the public one.
    ///
    /// Agents with `callbackBase: internal` send their webhooks there.
    pub internal_base_url: Option<BaseUrl>,
    /// Web origins that may call from a browser.
    ///
    /// A request from any other web page is refused. `"*"` allows all of them.
    pub allowed_origins: Vec<WebOrigin>,
    /// Reverse proxies whose forwarding headers count.
    ///
    /// Addresses or networks. For a request from one of them the client is the one that `X-Forwarded-For`, `Forwarded` or
    /// `X-Real-IP` names: in the access log and for `limits.connectionsPerAddress`. If those present name different
    /// clients, the request counts as the proxy's own, so the proxy must remove those that it does not set. The headers of
    /// others are ignored.
    pub trusted_proxies: Vec<Network>,
    /// Agent of the root address.
    ///
    /// Answers at `/a2a` and at the root. Without it the only agent does, else `guide` if it is served.
    pub default_agent: Option<AgentName>,
    /// Whether a request must name its protocol version.
    ///
    /// Off, a request without a version is served as 1.0, because real clients send none.
    pub strict_version: bool,
    /// Certificate and key for TLS.
    pub tls: Tls,
    /// Time a client has to send its request headers.
    ///
    /// With TLS it has the same time once more, before that, for the handshake.
    pub header_timeout: TimeSpan,
    /// Time a client has to send its request body.
    ///
    /// Every 32 KiB it has sent give it a second more. No pause may be longer than `headerTimeout`.
    pub body_timeout: TimeSpan,
    /// Time a client may take nothing of an answer that is ready.
    ///
    /// Then its connection is cut, with everything on it.
    pub write_timeout: TimeSpan,
    /// Time a connection may stay open without a request.
    ///
    /// Longer than the pools of common clients keep theirs, so that it is the client that closes.
    pub idle_timeout: TimeSpan,
}

/// The files TLS needs. With both, TLS is all that is spoken; with neither, it is not spoken at all.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// Certificate chain for TLS, in PEM, the server's own certificate first.
    ///
    /// With it and its key the server speaks TLS (1.2 and 1.3) and nothing else. A relative path starts at the workspace
    /// folder. Once either file changes, new connections get the new certificate within a second; a pair that cannot
    /// be used is logged and the one before stays.
    pub cert: Option<PathBuf>,
    /// Private key of that certificate, in PEM, without a passphrase.
    pub key: Option<PathBuf>,
}

section_keys!(Server, {
    bind: BindAddress(SocketAddr::from((Ipv4Addr::LOCALHOST, 41242))),
    public_base_url: None,
    internal_base_url: None,
    allowed_origins: Vec::new(),
    trusted_proxies: Vec::new(),
    default_agent: None,
    strict_version: false,
    tls (section): Tls::default(),
    header_timeout (nonzero): TimeSpan::from_seconds(10),
    body_timeout (nonzero): TimeSpan::from_seconds(60),
    write_timeout (nonzero): TimeSpan::from_seconds(60),
    idle_timeout (nonzero): TimeSpan::from_seconds(120),
});

impl Server {
    /// What cards say in front of every path. `listener` is the address really bound, which port 0 leaves open.
    pub fn base_url(&self, listener: SocketAddr) -> BaseUrl {
        self.public_base_url.clone().unwrap_or_else(|| self.url_at(listener))
    }

    /// The base URL for clients that call a socket address directly.
    pub fn url_at(&self, address: SocketAddr) -> BaseUrl {
        let scheme = if self.tls.files().is_some() { "https" } else { "http" };
        BaseUrl(format!("{scheme}://{address}"))
    }

    /// What to say of a listener that other machines reach without encryption. A public address with `https://` says that
    /// something in front of it speaks TLS.
    pub(crate) fn plain_text_warning(&self) -> Option<String> {
        let is_encrypted = self.tls.files().is_some()
            || self.public_base_url.as_ref().is_some_and(|public| public.as_str().starts_with("https://"));
        (!self.bind.0.ip().is_loopback() && !is_encrypted).then(|| {
            format!(
                "server.bind is {} and there is no TLS, so that keys and messages cross the network in plain text: set \
                 server.tls.cert and server.tls.key, or server.publicBaseUrl to the https:// address of a proxy in front",
                self.bind.0
            )
        })
    }
}

impl Tls {
    /// Certificate and key, if TLS is to be spoken.
    pub fn files(&self) -> Option<(&Path, &Path)> {
        Some((self.cert.as_deref()?, self.key.as_deref()?))
    }

    /// Makes relative paths start at a folder.
    pub(crate) fn start_at(&mut self, folder: &Path) {
        for path in [&mut self.cert, &mut self.key].into_iter().flatten() {
            let full = folder.join(&*path);
            *path = match full.strip_prefix(".") {
                // The folder itself is no file, and the message that says so needs a name for it.
                Ok(rest) if rest.as_os_str().is_empty() => PathBuf::from("."),
                Ok(rest) => rest.to_owned(),
                Err(_) => full,
            };
        }
    }

    fn read(&mut self, section: &mut Section<'_, '_>) {
        section.read("cert", &mut self.cert);
        section.read("key", &mut self.key);
        match (&self.cert, &self.key) {
            (Some(_), None) => {
                section.refuse("cert", "a certificate is of no use without its private key", "set server.tls.key too");
            }
            (None, Some(_)) => {
                section.refuse("key", "a private key is of no use without its certificate", "set server.tls.cert too");
            }
            _ => {}
        }
    }
}
