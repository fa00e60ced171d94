//! The request guard (Host and Origin): keeps web pages from driving the server through a user's browser.
//!
//! A page can send a request anywhere, and a name it controls can be made to point at loopback. So a foreign `Origin`
//! is refused unless it is configured, and while the server runs without keys `Host` must be a name that no stranger
//! can own: a loopback one, or the public base's.

use std::net::IpAddr;

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Uri};

use super::client_address::forwarding_header;
use crate::Options;

pub(crate) struct RequestGuard {
    open: bool,
    /// The scheme of this server's own URLs.
    scheme: &'static str,
    base: Option<WebOrigin>,
    allowed: Vec<String>,
    any: bool,
}

/// Where a request claims to come from.
pub(crate) enum Origin {
    /// Not from a web page, as far as one can tell.
    None,
    Same,
    /// From a page of a configured origin, which must be told so.
    Allowed,
}

/// Scheme, host and port, as browsers compare them.
#[derive(PartialEq)]
struct WebOrigin {
    scheme: String,
    host: String,
    port: u16,
}

impl RequestGuard {
    pub(crate) fn new(options: &Options) -> Self {
        let allowed: Vec<String> = options.allowed_origins.iter().map(|origin| origin.to_ascii_lowercase()).collect();
        let any = allowed.iter().any(|origin| origin == "*");
        let scheme = if options.tls.is_some() { "https" } else { "http" };
        Self { open: options.open, scheme, base: WebOrigin::parse(&options.public_base_url), allowed, any }
    }

    /// Checks a request, and tells which page it comes from, or why it is refused.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<Origin, String> {
        if self.open {
            // Every client of the proxy would be taken for a caller on this machine.
            if let Some(header) = forwarding_header(headers) {
                return Err(format!(
                    "this request came through a proxy, as its header {header} says, and a server without keys is for \
                     direct callers only: create a key with switchboard keys create, and send it as Authorization: \
                     Bearer KEY"
                ));
            }
            self.check_host(uri, headers)?;
        }
        let mut found = Origin::None;
        for origin in headers.get_all(ORIGIN) {
            found = self.check_origin(&String::from_utf8_lossy(origin.as_bytes()), uri, headers)?;
        }
        Ok(found)
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), String> {
        let named = headers.get_all(HOST).iter().map(|host| String::from_utf8_lossy(host.as_bytes()));
        // HTTP/2, and HTTP/1.1 through a proxy, name the host in the request line.
        let mut hosts = named.chain(uri.host().map(Into::into)).peekable();
        let foreign = match hosts.peek() {
            Some(_) => hosts.find(|host| !self.is_own_host(host_of(host))),
            None => Some("".into()),
        };
        match foreign {
            None => Ok(()),
            Some(host) => Err(format!(
                "host {host:?} is not a name of this server: while it runs without keys it answers to localhost, \
                 127.0.0.1, [::1] and the host of server.publicBaseUrl"
            )),
        }
    }

    fn is_own_host(&self, host: &str) -> bool {
        is_loopback(host) || self.base.as_ref().is_some_and(|base| base.host.eq_ignore_ascii_case(host))
    }

    fn check_origin(&self, origin: &str, uri: &Uri, headers: &HeaderMap) -> Result<Origin, String> {
        if self.any || self.allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)) {
            return Ok(Origin::Allowed);
        }
        let web_origin = WebOrigin::parse(origin);
        if web_origin.is_some() && web_origin == self.base {
            return Ok(Origin::Same);
        }
        // While open, Host has been found to be a name of ours, so a page at that very address is ours.
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = host.or_else(|| uri.authority().map(http::uri::Authority::as_str));
        let own = host.and_then(|host| WebOrigin::parse(&format!("{}://{host}", self.scheme)));
        if self.open && web_origin.is_some() && web_origin == own {
            return Ok(Origin::Same);
        }
        // All names of loopback with our port are this server.
        if let (Some(web_origin), Some(own)) = (web_origin, own)
            && (web_origin.scheme == own.scheme && web_origin.port == own.port)
            && (is_loopback(&web_origin.host) && is_loopback(&own.host))
        {
            return Ok(Origin::Same);
        }
        Err(format!(
            "requests from web pages of {origin:?} are refused: to let them in, add that origin to server.allowedOrigins"
        ))
    }
}

impl WebOrigin {
    fn parse(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        let scheme = uri.scheme_str()?.to_ascii_lowercase();
        let host = uri.host()?.to_ascii_lowercase();
        let port = uri.port_u16().or(match scheme.as_str() {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        })?;
        Some(Self { scheme, host, port })
    }
}

/// Whether a host names the machine itself.
fn is_loopback(host: &str) -> bool {
    if host == "127.0.0.1" || host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The host without its port; the brackets of an IPv6 address stay.
pub(super) fn host_of(authority: &str) -> &str {
    match authority.rfind(':') {
        Some(colon) if !authority[colon..].contains(']') => &authority[..colon],
        _ => authority,
    }
}
