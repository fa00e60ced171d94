//! Addresses of webhooks, and what an operator allows: nothing that passes may lead inside, and the text that is sent is
//! read the same way again.

use std::net::IpAddr;

use http::Uri;
use switchboard_egress::{Allowlist, Target, special_purpose};

/// Reads a text as an address, as an allowlist, and as the bytes of an IP address.
pub fn target(data: &[u8]) {
    if let Ok(address) = <[u8; 16]>::try_from(data) {
        embedded(address.into());
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (allowlist, bad) = Allowlist::from_text(text, text);
    let parts = text.split(|character: char| character == ',' || character.is_whitespace());
    let entries = parts.filter(|entry| !entry.is_empty()).count();
    assert!(bad.len() <= 2 * entries, "{text:?}");
    let Ok(target) = Target::parse(text) else { return };
    let again = Target::parse(target.url());
    assert_eq!(again.as_ref(), Ok(&target), "{text:?} is read differently once it is written");
    let uri: Uri = target.url().parse().expect("what passes can be sent");
    let host = uri.host().unwrap_or_default().trim_end_matches('.');
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => assert_eq!(target.address(), Some(address), "{text:?} leads elsewhere for the client"),
        Err(_) => {
            assert_eq!((target.host(), target.address()), (host, None), "{text:?} leads elsewhere for the client")
        }
    }
    if allowlist.is_empty() {
        assert!(!allowlist.allows_host(&target));
    }
}

/// However a refused address of version 4 is written in version 6, it is refused.
fn embedded(address: std::net::Ipv6Addr) {
    if let Some(inner) = address.to_ipv4_mapped()
        && special_purpose(IpAddr::V4(inner)).is_some()
    {
        assert!(special_purpose(IpAddr::V6(address)).is_some(), "{address}");
    }
}
