//! A normalised URL: the one spelling that is checked, connected to and sent.
//!
//! The WHATWG parser turns every spelling of an address (decimal, octal, hexadecimal, short, percent-encoded, full
//! width) into the address itself, so that the resolver and the HTTP client cannot read the host differently. Whether
//! the host may be called is decided by the policy.

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use url::{Host, ParseError, Url};

use crate::url_refusal::UrlRefusal;

/// The longest URL that is accepted, in bytes: what browsers and proxies agree on.
pub const MAXIMUM_LENGTH: usize = 2_048;

/// The longest name and the longest label that DNS can carry.
const MAXIMUM_NAME: usize = 253;
const MAXIMUM_LABEL: usize = 63;

/// A normalised URL. Its address is not checked yet.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    /// The same in the form that the HTTP client takes, made here so that it cannot fail later.
    uri: Uri,
    /// Lower case, without a trailing dot; IPv6 in brackets.
    host: String,
    address: Option<IpAddr>,
    port: u16,
}

impl Target {
    /// Reads a URL from outside. A fragment is dropped: it would never be sent.
    pub fn parse(text: &str) -> Result<Self, UrlRefusal> {
        if text.len() > MAXIMUM_LENGTH {
            return Err(UrlRefusal::TooLong { length: text.len() });
        }
        if text.chars().any(|character| character.is_control() || character.is_whitespace() || character == '\\') {
            return Err(UrlRefusal::Character);
        }
        let (scheme, rest) = text.split_once(':').ok_or(UrlRefusal::Scheme)?;
        if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
            return Err(UrlRefusal::Scheme);
        }
        // The parser would repair http:host and http:///host; others read these differently, so they do not pass.
        let rest = rest.strip_prefix("//").ok_or(UrlRefusal::Scheme)?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.is_empty() {
            return Err(UrlRefusal::NoHost);
        }
        if authority.contains('@') {
            return Err(UrlRefusal::UserInfo);
        }
        let mut url = Url::parse(text).map_err(|error| match error {
            ParseError::EmptyHost => UrlRefusal::NoHost,
            ParseError::InvalidPort => UrlRefusal::Port,
            ParseError::IdnaError
            | ParseError::InvalidIpv4Address
            | ParseError::InvalidIpv6Address
            | ParseError::InvalidDomainCharacter => UrlRefusal::Host,
            _ => UrlRefusal::Malformed,
        })?;
        url.set_fragment(None);
        if url.as_str().len() > MAXIMUM_LENGTH {
            return Err(UrlRefusal::TooLong { length: url.as_str().len() });
        }
        let (host, address) = match url.host().ok_or(UrlRefusal::NoHost)? {
            Host::Domain(name) => (dns_name(name).ok_or(UrlRefusal::Host)?.to_owned(), None),
            Host::Ipv4(address) => (address.to_string(), Some(IpAddr::V4(address))),
            Host::Ipv6(address) => (format!("[{address}]"), Some(IpAddr::V6(address))),
        };
        let port = url.port_or_known_default().filter(|port| *port != 0).ok_or(UrlRefusal::Port)?;
        let uri = url.as_str().parse().map_err(|_| UrlRefusal::Malformed)?;
        Ok(Self { url, uri, host, address, port })
    }

    /// The normalised URL.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// `scheme://host:port` in lower case, the port always written: one name for one endpoint.
    pub fn origin(&self) -> String {
        format!("{}://{}:{}", self.url.scheme(), self.host, self.port)
    }

    /// The host in lower case without a trailing dot; an IPv6 address in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, written or by the scheme.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address, when the host is one and not a name.
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    pub(crate) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The normalised URL as requests hold it.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Whether the host means this machine by its name alone (RFC 6761).
    pub(crate) fn is_localhost(&self) -> bool {
        self.host == "localhost" || self.host.ends_with(".localhost")
    }

    /// The name to look up. A trailing dot stays, because it keeps the system's search list out of it.
    pub(crate) fn name(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }
}

/// Redacted: path and query may hold secrets, so only the origin is printed.
impl fmt::Debug for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Target").field(&self.origin()).finish()
    }
}

/// The name without its trailing dot, if DNS could hold it. The URL parser accepts characters and lengths that other
/// parsers do not.
pub(crate) fn dns_name(name: &str) -> Option<&str> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let plain = |label: &str| {
        (1..=MAXIMUM_LABEL).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte))
    };
    (name.len() <= MAXIMUM_NAME && name.split('.').all(plain)).then_some(name)
}
