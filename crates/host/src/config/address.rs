//! Addresses as settings: bind address, public base URL, web origins, networks, allowed hosts and nameservers.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::Uri;
use ipnet::IpNet;
use serde::Serialize;
use switchboard_egress::Allowlist;

use crate::config::problem::Mismatch;
use crate::config::value::{Scalar, serialize_as_text};
use crate::json_schema_of;

/// Address and port to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct BindAddress(pub SocketAddr);

impl Scalar for BindAddress {
    const WRITE: &'static str = "address:port, such as 127.0.0.1:41242, or 0.0.0.0:41242 for every interface";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        let address = match text.strip_prefix("localhost:") {
            Some(port) => port.parse().ok().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
            None => text.parse().ok(),
        };
        address.map(Self).ok_or_else(|| Self::mismatch(text, "is not an address with a port"))
    }
}

/// The beginning of every public address, `https://agents.example.com`, without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct BaseUrl(pub(super) String);

impl BaseUrl {
    /// The address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Scalar for BaseUrl {
    const WRITE: &'static str = "an address that begins with https:// or http://, such as https://agents.example.com";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        let uri = web_address(text).ok_or_else(|| Self::mismatch(text, "is not a web address"))?;
        if uri.query().is_some() || text.contains('#') {
            return Err(Self::mismatch(text, "has a query or a fragment, and cards put paths behind it"));
        }
        Ok(Self(text.trim_end_matches('/').to_owned()))
    }
}

/// A web page's origin that may call us from a browser: `https://app.example.com`, or `*` for any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct WebOrigin(pub(crate) String);

impl Scalar for WebOrigin {
    const WRITE: &'static str = "an origin such as https://app.example.com, without a path, or \"*\" for any";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        if text == "*" {
            return Ok(Self(text.to_owned()));
        }
        let uri = web_address(text).ok_or_else(|| Self::mismatch(text, "is not an origin"))?;
        if !matches!(uri.path(), "" | "/") || text.ends_with('/') || text.contains(['?', '#']) {
            return Err(Self::mismatch(text, "is more than an origin"));
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

/// A network: `10.0.0.0/8`, `fd00::/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(pub IpNet);

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Scalar for Network {
    const WRITE: &'static str =
        "an address and the length of its prefix, such as 10.0.0.0/8 or fd00::/8, or one address, such as 10.0.0.1";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(address.into()));
        }
        let network: IpNet = text.parse().map_err(|_| Self::mismatch(text, "is not a network"))?;
        // An allowlist must not guess whether the whole network or one machine is meant.
        if network.trunc() != network {
            let (whole, one) = (network.trunc(), IpNet::from(network.addr()));
            return Err(Mismatch::new(
                format!("\"{text}\" is an address inside a network"),
                format!("write {whole} for the whole network or {one} for the one address"),
            ));
        }
        Ok(Self(network))
    }
}

/// A host that may be called although it is not public: `host`, `host:port` or `*.domain`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct AllowedHost(pub(crate) String);

impl Scalar for AllowedHost {
    const WRITE: &'static str = "a host such as hooks.internal, hooks.internal:8080 or *.internal, without http://";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        match Allowlist::parse([text], [""; 0]) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(_) => Err(Self::mismatch(text, "is not a host")),
        }
    }
}

/// A nameserver: its address, and its port unless that is the usual one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nameserver(pub SocketAddr);

impl Nameserver {
    const PORT: u16 = 53;
}

impl fmt::Display for Nameserver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.port() {
            Self::PORT => write!(formatter, "{}", self.0.ip()),
            _ => write!(formatter, "{}", self.0),
        }
    }
}

impl Scalar for Nameserver {
    const WRITE: &'static str = "an address, such as 10.0.0.2, 10.0.0.2:5353 or [fd00::2]:5353";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        let with_port = || text.parse::<SocketAddr>().ok().filter(|address| address.port() != 0);
        let address = text.parse::<IpAddr>().ok().map(|address| SocketAddr::from((address, Self::PORT)));
        address.or_else(with_port).map(Self).ok_or_else(|| Self::mismatch(text, "is not an address"))
    }
}

/// An absolute http or https address with a host and without a user name.
fn web_address(text: &str) -> Option<Uri> {
    let uri: Uri = text.parse().ok()?;
    let web = matches!(uri.scheme_str(), Some("http" | "https"));
    let authority = uri.authority()?;
    let usable = !authority.host().is_empty() && !authority.as_str().contains('@');
    (web && usable).then_some(uri)
}

serialize_as_text!(Network, Nameserver);

json_schema_of!(BindAddress, {
    "type": "string", "pattern": ":[0-9]+$",
    "examples": ["127.0.0.1:41242", "[::1]:41242"]
});
json_schema_of!(BaseUrl, {
    "type": "string", "pattern": "^https?://[^?#]+$",
    "examples": ["https://agents.example.com"]
});
json_schema_of!(WebOrigin, {
    "type": "string", "pattern": "^(\\*|https?://[^/?#]+)$",
    "examples": ["https://app.example.com"]
});
json_schema_of!(Network, {
    "type": "string", "pattern": "^[0-9a-fA-F.:]+(/[0-9]{1,3})?$",
    "examples": ["10.0.0.0/8", "10.0.0.1"]
});
json_schema_of!(AllowedHost, {
    "type": "string", "pattern": "^[^/?#@\\s]+$",
    "examples": ["hooks.internal:8080", "*.internal"]
});
json_schema_of!(Nameserver, {
    "type": "string", "pattern": "^[0-9a-fA-F.:\\[\\]]+$",
    "examples": ["10.0.0.2", "10.0.0.2:5353"]
});
