//! Page tokens: one of ours is read as the place that was written, and nothing else is read at all.

use switchboard_a2a::{ListRequest, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::{Address, CallerId};
use switchboard_server::page_token::PageTokens;

/// Reads the input as a token; then its first bytes are a place to write a token for, and the others spoil that token.
pub fn target(data: &[u8]) {
    let tokens =
        |secret| PageTokens::new([secret; 32], &CallerId::from("local"), &Address::Root, &ListRequest::default());
    let own = tokens(7);
    if let Ok(token) = std::str::from_utf8(data)
        && let Ok(place) = own.read(token)
    {
        assert_eq!(own.write(place), token, "another text for the same place");
    }
    let (numbers, edits) = data.split_at(data.len().min(16));
    let mut numbers =
        numbers.chunks(8).map(|bytes| bytes.iter().fold(0, |number, byte| number << 8 | i64::from(*byte)));
    let place = (Timestamp(numbers.next().unwrap_or(-1)), TaskKey(numbers.next().unwrap_or(-1)));
    let token = own.write(place);
    assert_eq!(own.read(&token).ok(), Some(place), "{token}");
    assert!(tokens(8).read(&token).is_err(), "another server's token {token}");
    let spoiled = spoil(&token, edits);
    assert!(spoiled == token || own.read(&spoiled).is_err(), "{spoiled} is not {token}");
}

/// Each two bytes are a place in the text and what to put there; a byte that is no text goes in front.
fn spoil(token: &str, edits: &[u8]) -> String {
    let mut characters: Vec<char> = token.chars().collect();
    for edit in edits.chunks_exact(2) {
        let index = usize::from(edit[0]) % characters.len();
        match edit[1] {
            byte @ 0..128 => characters[index] = char::from(byte),
            byte => characters.insert(0, char::from(byte)),
        }
    }
    characters.into_iter().collect()
}
