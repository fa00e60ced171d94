//! Page tokens: each fits its own query on its own server, and shows nothing of its position.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use switchboard_a2a::{ListRequest, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::{Address, CallerId};
use switchboard_server::page_token::PageTokens;

#[test]
fn a_token_fits_only_its_own_query_and_server() {
    let (caller, address) = (CallerId::from("ann"), Address::Root);
    let query = ListRequest::default();
    let own = PageTokens::new([7; 32], &caller, &address, &query);
    for place in [(-5, 7), (i64::MIN, i64::MAX), (i64::MAX, i64::MIN), (0, -1)] {
        let place = (Timestamp(place.0), TaskKey(place.1));
        assert_eq!(own.read(&own.write(place)).ok(), Some(place));
    }
    let token = own.write((Timestamp(1_800_000_000_000), TaskKey(7)));
    let filtered = ListRequest { context_id: Some("".into()), ..ListRequest::default() };
    for other in [
        PageTokens::new([8; 32], &caller, &address, &query),
        PageTokens::new([7; 32], &CallerId::from("bob"), &address, &query),
        PageTokens::new([7; 32], &caller, &Address::Agent("echo".into()), &query),
        PageTokens::new([7; 32], &caller, &address, &filtered),
    ] {
        assert!(other.read(&token).is_err());
    }
    for broken in ["", "x", "!!!", &token[1..], &format!("{token}AAAA")] {
        assert!(own.read(broken).is_err(), "{broken}");
    }
    let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(own.read(&URL_SAFE_NO_PAD.encode(changed)).is_err(), "bit {bit}");
    }
}

#[test]
fn a_token_shows_nothing_of_its_position() {
    let own = PageTokens::new([7; 32], &CallerId::from("ann"), &Address::Root, &ListRequest::default());
    let bytes = |key| URL_SAFE_NO_PAD.decode(own.write((Timestamp(5), TaskKey(key)))).unwrap();
    for key in 1..200 {
        let (one, next) = (bytes(key), bytes(key + 1));
        let same = one.iter().zip(&next).filter(|(one, next)| one == next).count();
        assert!(same < one.len() / 2, "neighbours differ in more than a number: {one:?} {next:?}");
        assert!(!one.windows(8).any(|window| window == key.to_be_bytes()), "{one:?}");
    }
}
