//! `server`: where Switchboard listens and what it calls itself.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::config::address::{BaseUrl, BindAddress, WebOrigin};
use crate::config::agent_name::AgentName;
use crate::config::section::Section;
use crate::config::time_span::TimeSpan;

/// The front door.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default, deny_unknown_fields)]
pub struct Server {
    /// Address to listen on.
    ///
    /// Anything but a loopback address needs at least one key.
    pub bind: BindAddress,
    /// Public address.
    ///
    /// What agent cards say in front of every path. Without it they say `http://` and the address listened on.
    pub public_base_url: Option<BaseUrl>,
    /// Web origins that may call from a browser.
    ///
    /// A request from any other web page is refused. `"*"` allows all of them.
    pub allowed_origins: Vec<WebOrigin>,
    /// Agent of the root address.
    ///
    /// Answers at `/a2a` and at the root. Without it the only agent does, else `guide` if it is served.
    pub default_agent: Option<AgentName>,
    /// Whether a request must name its protocol version.
    ///
    /// Off, a request without a version is served as 1.0, because real clients send none.
    pub strict_version: bool,
    /// Certificate and key for TLS.
    ///
    /// Refused by this version, which leaves TLS to a proxy in front of it.
    pub tls: Option<Tls>,
    /// Time a client has to send its request headers.
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

/// The files TLS needs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Tls {
    /// Certificate chain, in PEM.
    pub cert: PathBuf,
    /// Private key, in PEM.
    pub key: PathBuf,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            bind: BindAddress(SocketAddr::from((Ipv4Addr::LOCALHOST, 41242))),
            public_base_url: None,
            allowed_origins: Vec::new(),
            default_agent: None,
            strict_version: false,
            tls: None,
            header_timeout: TimeSpan::from_seconds(10),
            body_timeout: TimeSpan::from_seconds(60),
            write_timeout: TimeSpan::from_seconds(60),
            idle_timeout: TimeSpan::from_seconds(120),
        }
    }
}

impl Server {
    /// What cards say in front of every path. `listener` is the address really bound, which port 0 leaves open.
    #[must_use]
    pub fn base_url(&self, listener: SocketAddr) -> BaseUrl {
        self.public_base_url.clone().unwrap_or_else(|| BaseUrl::of_listener(listener))
    }

    pub(crate) fn read(&mut self, section: &mut Section<'_, '_>) {
        section.read("bind", &mut self.bind);
        section.read("publicBaseUrl", &mut self.public_base_url);
        section.read("allowedOrigins", &mut self.allowed_origins);
        section.read("defaultAgent", &mut self.default_agent);
        section.read("strictVersion", &mut self.strict_version);
        Self::read_tls(section);
        section.read("headerTimeout", &mut self.header_timeout);
        section.refuse_zero("headerTimeout", self.header_timeout);
        section.read("bodyTimeout", &mut self.body_timeout);
        section.refuse_zero("bodyTimeout", self.body_timeout);
        section.read("writeTimeout", &mut self.write_timeout);
        section.refuse_zero("writeTimeout", self.write_timeout);
        section.read("idleTimeout", &mut self.idle_timeout);
        section.refuse_zero("idleTimeout", self.idle_timeout);
    }

    fn read_tls(section: &mut Section<'_, '_>) {
        section.section("tls", |section| {
            let (mut cert, mut key) = (None::<PathBuf>, None::<PathBuf>);
            section.read("cert", &mut cert);
            section.read("key", &mut key);
        });
        if section.is_set("tls") {
            section.refuse(
                "tls",
                "this version does not speak TLS itself",
                "remove it, put a TLS proxy in front, and set server.publicBaseUrl to the proxy's https:// address",
            );
        }
    }
}
