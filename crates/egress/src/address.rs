//! The address table of the SSRF guard: which addresses are not public, by the registries of special-purpose addresses.
//!
//! Of IPv6 only 2000::/3 is global unicast today, and forms that carry an IPv4 address are refused whatever they carry,
//! because a translator on the way could turn them into a private one. A translator with a prefix of its own looks
//! like any public address; where one exists, only the network's own firewall can close it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};
use thiserror::Error;

/// The class of a refused address. Safe to show for an address that the caller wrote, not for one that a name
/// resolved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum AddressClass {
    /// 0.0.0.0/8 and `::`: "this host", which many systems connect to themselves.
    #[error("the unspecified address")]
    Unspecified,
    /// 127.0.0.0/8 and `::1`.
    #[error("a loopback address")]
    Loopback,
    /// RFC 1918, and unique local IPv6.
    #[error("a private address")]
    Private,
    /// 169.254.0.0/16 and fe80::/10, where clouds keep their metadata services.
    #[error("a link-local address")]
    LinkLocal,
    /// 100.64.0.0/10, shared by carriers and by overlay networks.
    #[error("a shared carrier address")]
    CarrierNat,
    /// A cloud's own service behind an address that looks public.
    #[error("a cloud platform's own address")]
    Metadata,
    /// 224.0.0.0/4 and ff00::/8.
    #[error("a multicast address")]
    Multicast,
    /// Documentation and benchmarking ranges: never a real host.
    #[error("a documentation or benchmarking address")]
    Documentation,
    /// IPv6 forms that carry an IPv4 address: compatible, NAT64, 6to4, Teredo, ISATAP.
    #[error("an ipv6 address that carries an ipv4 address")]
    Embedded,
    /// Everything else that is reserved or not allocated.
    #[error("a reserved address")]
    Reserved,
}

const V4: [(Ipv4Net, AddressClass); 16] = [
    (v4(0, 0, 0, 0, 8), AddressClass::Unspecified),
    (v4(10, 0, 0, 0, 8), AddressClass::Private),
    (v4(100, 64, 0, 0, 10), AddressClass::CarrierNat),
    (v4(127, 0, 0, 0, 8), AddressClass::Loopback),
    // Azure's platform address: inside a public block, yet answered by the machine's own host.
    (v4(168, 63, 129, 16, 32), AddressClass::Metadata),
    (v4(169, 254, 0, 0, 16), AddressClass::LinkLocal),
    (v4(172, 16, 0, 0, 12), AddressClass::Private),
    (v4(192, 0, 0, 0, 24), AddressClass::Reserved),
    (v4(192, 0, 2, 0, 24), AddressClass::Documentation),
    // The old 6to4 relay anycast.
    (v4(192, 88, 99, 0, 24), AddressClass::Reserved),
    (v4(192, 168, 0, 0, 16), AddressClass::Private),
    (v4(198, 18, 0, 0, 15), AddressClass::Documentation),
    (v4(198, 51, 100, 0, 24), AddressClass::Documentation),
    (v4(203, 0, 113, 0, 24), AddressClass::Documentation),
    (v4(224, 0, 0, 0, 4), AddressClass::Multicast),
    (v4(240, 0, 0, 0, 4), AddressClass::Reserved),
];

const V6: [(Ipv6Net, AddressClass); 16] = [
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), AddressClass::Unspecified),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), AddressClass::Loopback),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 96), AddressClass::Embedded),
    (v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96), AddressClass::Embedded),
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), AddressClass::Embedded),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64), AddressClass::Reserved),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), AddressClass::Embedded),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), AddressClass::Reserved),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), AddressClass::Documentation),
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), AddressClass::Embedded),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), AddressClass::Documentation),
    (v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16), AddressClass::Reserved),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), AddressClass::Private),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), AddressClass::LinkLocal),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), AddressClass::Private),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), AddressClass::Multicast),
];

/// All that is allocated for global unicast so far.
const GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// The class of an address that is not public; `None` for a public one.
pub fn special_purpose(address: IpAddr) -> Option<AddressClass> {
    // An IPv4-mapped IPv6 address is the IPv4 address: the system connects to that one.
    match address.to_canonical() {
        IpAddr::V4(address) => V4.iter().find(|(net, _)| net.contains(&address)).map(|(_, reason)| *reason),
        IpAddr::V6(address) => {
            if let Some((_, reason)) = V6.iter().find(|(net, _)| net.contains(&address)) {
                return Some(*reason);
            }
            if !GLOBAL_UNICAST.contains(&address) {
                return Some(AddressClass::Reserved);
            }
            is_isatap(&address).then_some(AddressClass::Embedded)
        }
    }
}

/// ISATAP keeps an IPv4 address in the interface identifier of any prefix.
fn is_isatap(address: &Ipv6Addr) -> bool {
    let segments = address.segments();
    segments[5] == 0x5efe && matches!(segments[4], 0 | 0x200)
}

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(s: [u16; 8], length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]), length)
}
