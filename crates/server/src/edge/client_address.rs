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
    headers
        .keys()
        .find(|name| [&FORWARDED, &VIA, &X_REAL_IP].contains(name) || name.as_str().starts_with("x-forwarded-"))
}
