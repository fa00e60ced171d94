//! The client's address. Behind a trusted reverse proxy that is what its forwarding headers say; those of other peers are
//! ignored, because any client can send them.
//!
//! Each proxy appends the address it heard from. So the list is read from its end, past the trusted proxies: the first
//! address that is none of theirs is the last one that a trusted proxy vouches for.

use std::net::{IpAddr, SocketAddr};

use http::header::{FORWARDED, VIA};
use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClientAddress {
    /// Where the request comes from.
    pub(super) address: IpAddr,
    /// Whether a trusted proxy says so, rather than the connection itself.
    pub(super) is_forwarded: bool,
}

/// The client of a request that came over a connection from `peer`.
pub(super) fn of_request(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> ClientAddress {
    let peer = peer.to_canonical();
    let is_trusted = |address: &IpAddr| trusted.iter().any(|proxies| proxies.contains(address));
    let direct = ClientAddress { address: peer, is_forwarded: false };
    if !is_trusted(&peer) {
        return direct;
    }
    let mut nearest = None;
    for hop in hops(headers).into_iter().rev() {
        // An element that is no address was not written by a trusted proxy, so nothing before it counts.
        let Some(address) = hop else { break };
        nearest = Some(address);
        if !is_trusted(&address) {
            break;
        }
    }
    nearest.map_or(direct, |address| ClientAddress { address, is_forwarded: true })
}

/// The addresses that the headers name, the one nearest to us last. Most proxies write `X-Forwarded-For` and let the other
/// headers of their client pass, so that one goes first.
fn hops(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    let listed = |name: HeaderName, read: fn(&str) -> Option<IpAddr>| -> Vec<Option<IpAddr>> {
        // Element by element: what a client wrote before them must not make those of the proxies unreadable.
        let elements = headers.get_all(name).into_iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        elements.map(|element| std::str::from_utf8(element).ok().and_then(|element| read(element.trim()))).collect()
    };
    [(X_FORWARDED_FOR, address as fn(&str) -> _), (FORWARDED, forwarded_for), (X_REAL_IP, address)]
        .into_iter()
        .map(|(name, read)| listed(name, read))
        .find(|hops| !hops.is_empty())
        .unwrap_or_default()
}

/// The client in one element of `Forwarded` (RFC 7239).
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let (_, node) = pairs.into_iter().find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    address(node.trim().trim_matches('"'))
}

/// An address, perhaps with a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    bare.parse().ok().or_else(with_port).map(|address: IpAddr| address.to_canonical())
}

/// A header that only a proxy writes, if there is one.
pub(super) fn forwarding_header(headers: &HeaderMap) -> Option<&HeaderName> {
    let is_forwarding =
        |name: &&HeaderName| **name == FORWARDED || **name == VIA || **name == X_REAL_IP || is_x_forwarded(name);
    headers.keys().find(is_forwarding)
}

fn is_x_forwarded(name: &HeaderName) -> bool {
    name.as_str().starts_with("x-forwarded-")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn client(peer: &str, headers: &[(&'static str, &'static str)]) -> (String, bool) {
        let pairs =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(name, value);
        }
        let trusted = ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        let found = of_request(peer.parse().unwrap(), &map, &trusted);
        (found.address.to_string(), found.is_forwarded)
    }

    #[test]
    fn what_a_client_wrote_before_its_proxy_hides_nothing() {
        let mut headers = HeaderMap::new();
        headers.insert(X_FORWARDED_FOR, HeaderValue::from_bytes(b"\xe9, 203.0.113.5").unwrap());
        let found = of_request("10.0.0.1".parse().unwrap(), &headers, &["10.0.0.0/8".parse().unwrap()]);
        assert_eq!((found.address.to_string().as_str(), found.is_forwarded), ("203.0.113.5", true));
    }

    #[test]
    fn only_trusted_proxies_say_who_the_client_is() {
        let spoofed = [("x-forwarded-for", "192.0.2.9")];
        assert_eq!(client("198.51.100.1", &spoofed), ("198.51.100.1".to_owned(), false));
        assert_eq!(client("10.0.0.1", &spoofed), ("192.0.2.9".to_owned(), true));
        assert_eq!(client("::ffff:10.0.0.1", &spoofed), ("192.0.2.9".to_owned(), true));
        assert_eq!(client("10.0.0.1", &[]), ("10.0.0.1".to_owned(), false));
    }

    #[test]
    fn what_a_client_writes_itself_stands_before_what_the_proxies_add() {
        let chain = [("x-forwarded-for", "1.1.1.1, 192.0.2.9, 10.0.0.7")];
        assert_eq!(client("10.0.0.1", &chain).0, "192.0.2.9");
        let in_two = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "192.0.2.9:4711")];
        assert_eq!(client("10.0.0.1", &in_two).0, "192.0.2.9");
        let unreadable = [("x-forwarded-for", "192.0.2.9, unknown, 10.0.0.7")];
        assert_eq!(client("10.0.0.1", &unreadable).0, "10.0.0.7");
        let both = [("forwarded", "for=1.1.1.1"), ("x-forwarded-for", "192.0.2.9")];
        assert_eq!(client("10.0.0.1", &both).0, "192.0.2.9", "a client's own header passes most proxies");
    }

    #[test]
    fn each_header_is_read_in_its_own_form() {
        for (header, value, found) in [
            ("forwarded", "proto=https;For=\"[2001:db8::7]:4711\";by=10.0.0.2", "2001:db8::7"),
            ("forwarded", "for=192.0.2.9, for=10.1.1.1", "192.0.2.9"),
            ("x-forwarded-for", "[2001:db8::7]", "2001:db8::7"),
            ("x-real-ip", "2001:db8::7", "2001:db8::7"),
            ("forwarded", "for=_hidden", "fd00::1"),
        ] {
            assert_eq!(client("fd00::1", &[(header, value)]).0, found, "{header}: {value}");
        }
    }
}
