//! The small texts of headers and queries: cursors, versions, times, states, traces.

use switchboard_a2a::{TaskState, Timestamp, parse_version};
use switchboard_engine::{Cursor, Traceparent};

/// Reads one text as each of them.
pub fn target(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(cursor) = Cursor::parse(text) {
        assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor), "{text:?}");
    }
    if let Some(version) = parse_version(text) {
        let written = format!("{}.{}", version.major, version.minor);
        assert_eq!(parse_version(&written), Some(version), "{text:?}");
    }
    if let Some(at) = Timestamp::parse(text) {
        assert_eq!(Timestamp::parse(&at.to_string()), Some(at), "{text:?}");
    }
    if let Some(traceparent) = Traceparent::parse(text) {
        assert_eq!(Traceparent::parse(traceparent.as_str()), Some(traceparent), "{text:?}");
    }
    TaskState::from_wire(text);
}
