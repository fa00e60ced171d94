//! One line of a task's log.

use switchboard_engine::event::{Event, kind_of};

use super::stable::{one_line_of_json, text};

/// Reads a line; what it says must survive being written, and its kind must be told without decoding it.
pub fn target(data: &[u8]) {
    kind_of(data);
    let Ok(event) = Event::decode(data) else { return };
    let mut line = Vec::new();
    event.encode_into(&mut line);
    one_line_of_json(&line);
    assert_eq!(kind_of(&line), event.kind(), "{}", text(&line));
    let again = Event::decode(&line).unwrap_or_else(|error| panic!("{error} in {}", text(&line)));
    assert_eq!(again, event, "{}", text(&line));
}
