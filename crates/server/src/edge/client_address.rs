//! The client's address. Behind a trusted reverse proxy that is what its forwarding headers say; those of other peers are
//! ignored, because any client can send them.
//!
//! Each proxy appends the address it heard from. So the list is read from its end, past the trusted proxies: the first
//! address that is none of theirs is the last one that a trusted proxy vouches for. Which of the headers the proxy writes is
//! not known, and most proxies let the others pass as the client sent them: only what all of them agree on is believed.

use std::net::{IpAddr, SocketAddr};

use http::header::{FORWARDED, VIA};
use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// Reads the address in one element of a forwarding header.
type ReadAddress = fn(&str) -> Option<IpAddr>;

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientAddress {
    /// The peer itself, whose connection was counted when it was accepted.
    Peer(IpAddr),
    /// The client that a trusted proxy names.
    Forwarded(IpAddr),
    /// The address of a trusted proxy whose headers contradict each other or name no address. All such requests count as
    /// those of one client, because each could name a client of its own choice.
    Unattributed(IpAddr),
}

impl ClientAddress {
    pub(super) fn address(self) -> IpAddr {
        let (Self::Peer(address) | Self::Forwarded(address) | Self::Unattributed(address)) = self;
        address
    }
}

/// The client of a request that came over a connection from `peer`.
pub(super) fn of_request(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> ClientAddress {
    let peer = peer.to_canonical();
    let is_trusted = |address: &IpAddr| trusted.iter().any(|proxies| proxies.contains(address));
    if !is_trusted(&peer) {
        return ClientAddress::Peer(peer);
    }
    let readers: [(HeaderName, ReadAddress); 3] =
        [(X_FORWARDED_FOR, address), (FORWARDED, forwarded_for), (X_REAL_IP, address)];
    let mut clients = readers.into_iter().filter_map(|(name, read)| named_client(headers, &name, read, is_trusted));
    match clients.next() {
        None => ClientAddress::Peer(peer),
        Some(Some(client)) if clients.all(|other| other == Some(client)) => ClientAddress::Forwarded(client),
        Some(_) => ClientAddress::Unattributed(peer),
    }
}

/// The client that a header names, or nothing in its place if that is no address; none if there is no such header.
fn named_client(
    headers: &HeaderMap,
    name: &HeaderName,
    read: ReadAddress,
    is_trusted: impl Fn(&IpAddr) -> bool,
) -> Option<Option<IpAddr>> {
    let values = headers.get_all(name).iter().rev();
    // Element by element: what a client wrote before them must not make those of the proxies unreadable.
    let elements = values.flat_map(|value| value.as_bytes().rsplit(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    let mut nearest = None;
    for element in elements.filter(|element| !element.is_empty()) {
        let hop = std::str::from_utf8(element).ok().and_then(read);
        nearest = Some(hop);
        if !hop.is_some_and(|address| is_trusted(&address)) {
            break;
        }
    }
    nearest
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
