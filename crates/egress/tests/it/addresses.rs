//! The address table by properties: no spelling in IPv6 frees an IPv4 address that is refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use switchboard_egress::{AddressClass, special_purpose};

/// Every way to carry an IPv4 address in an IPv6 one that a router on the way might unpack.
fn embeddings(inner: Ipv4Addr, filler: u64) -> Vec<Ipv6Addr> {
    let bits = u128::from(inner.to_bits());
    let filler = u128::from(filler);
    let inverted = u128::from(!inner.to_bits());
    let prefix = |text: &str| text.parse::<Ipv6Addr>().unwrap().to_bits();
    [
        bits,
        prefix("::ffff:0:0") | bits,
        prefix("::ffff:0:0:0") | bits,
        prefix("64:ff9b::") | bits,
        prefix("64:ff9b:1::") | bits,
        // RFC 6052 with a 48 bit prefix: two octets before the bits 64 to 71, two after.
        prefix("64:ff9b:1::") | (bits >> 16) << 64 | (bits & 0xffff) << 40,
        prefix("2002::") | bits << 80 | filler,
        // Teredo: the server's address in the clear, the client's inverted.
        prefix("2001::") | bits << 64 | filler,
        prefix("2001::") | filler << 32 & ((1 << 96) - (1 << 32)) | inverted,
        // ISATAP under a global prefix.
        prefix("2606:4700::5efe:0:0") | bits,
        prefix("2606:4700::200:5efe:0:0") | bits,
        prefix("fe80::5efe:0:0") | bits,
    ]
    .map(Ipv6Addr::from_bits)
    .to_vec()
}

proptest! {
    #[test]
    fn no_embedding_frees_a_refused_address(bits: u32, filler: u64) {
        let inner = Ipv4Addr::from_bits(bits);
        let plain = special_purpose(IpAddr::V4(inner));
        for address in embeddings(inner, filler) {
            let verdict = special_purpose(IpAddr::V6(address));
            if address.to_ipv4_mapped().is_some() {
                prop_assert_eq!(verdict, plain, "{} is judged as {}", address, inner);
            } else {
                prop_assert!(verdict.is_some(), "{} carries {}", address, inner);
            }
        }
    }

    /// The same, where random bits seldom go: inside the refused ranges themselves.
    #[test]
    fn no_embedding_frees_a_private_one(low: u32, filler: u64, range in 0_usize..6) {
        let (net, mask) = [
            (0x7f00_0000, 0x00ff_ffff), (0x0a00_0000, 0x00ff_ffff), (0xac10_0000, 0x000f_ffff),
            (0xc0a8_0000, 0xffff), (0xa9fe_0000, 0xffff), (0x6440_0000, 0x003f_ffff),
        ][range];
        let inner = Ipv4Addr::from_bits(net | low & mask);
        prop_assert!(special_purpose(IpAddr::V4(inner)).is_some());
        for address in embeddings(inner, filler) {
            prop_assert!(special_purpose(IpAddr::V6(address)).is_some(), "{} carries {}", address, inner);
        }
    }

    /// The standard library knows some of the ranges too; nothing that it calls special may be public for us.
    #[test]
    fn agrees_with_the_standard_library(bits: u32, wide: u128) {
        let v4 = Ipv4Addr::from_bits(bits);
        if v4.is_loopback() || v4.is_private() || v4.is_link_local() || v4.is_multicast() || v4.is_broadcast()
            || v4.is_documentation() || v4.is_unspecified()
        {
            prop_assert!(special_purpose(IpAddr::V4(v4)).is_some());
        }
        let v6 = Ipv6Addr::from_bits(wide);
        if v6.is_loopback() || v6.is_multicast() || v6.is_unique_local() || v6.is_unicast_link_local()
            || v6.is_unspecified()
        {
            prop_assert!(special_purpose(IpAddr::V6(v6)).is_some());
        }
        if wide >> 125 != 1 && v6.to_ipv4_mapped().is_none() {
            prop_assert!(special_purpose(IpAddr::V6(v6)).is_some(), "{} is not global unicast", v6);
        }
    }
}

#[test]
fn the_class_is_the_one_a_reader_expects() {
    let of = |text: &str| special_purpose(text.parse().unwrap());
    assert_eq!(of("169.254.169.254"), Some(AddressClass::LinkLocal));
    assert_eq!(of("::ffff:169.254.169.254"), Some(AddressClass::LinkLocal));
    assert_eq!(of("fd00:ec2::254"), Some(AddressClass::Private));
    assert_eq!(of("168.63.129.16"), Some(AddressClass::Metadata));
    assert_eq!(of("::"), Some(AddressClass::Unspecified));
    assert_eq!(of("::1"), Some(AddressClass::Loopback));
    assert_eq!(of("93.184.215.14"), None);
    assert_eq!(of("2606:4700:4700::1111"), None);
}
