//! What "read again the same" means in each dialect.

use std::fmt::Debug;

use switchboard_a2a::Dialect;

/// v1.0 loses nothing. v0.3 cannot carry everything, but what has passed through it once passes unchanged from then on.
/// Whatever is written is JSON on one line, because an event stream and the log are made of lines.
pub(super) fn stable<T: PartialEq + Debug>(
    dialect: Dialect,
    value: &T,
    write: impl Fn(&T) -> Vec<u8>,
    read: impl Fn(&[u8]) -> Result<T, serde_json::Error>,
) {
    let written = write(value);
    one_line_of_json(&written);
    let once = read(&written).unwrap_or_else(|error| panic!("{dialect:?}: {error} in {}", text(&written)));
    if dialect == Dialect::V1 {
        assert_eq!(&once, value, "{}", text(&written));
        return;
    }
    let again = write(&once);
    let twice = read(&again).unwrap_or_else(|error| panic!("{dialect:?}: {error} in {}", text(&again)));
    assert_eq!(twice, once, "{dialect:?}: {}", text(&again));
}

/// Panics unless it is one JSON value without a line break.
pub(super) fn one_line_of_json(written: &[u8]) {
    let parsed = serde_json::from_slice::<&serde_json::value::RawValue>(written);
    assert!(parsed.is_ok(), "{parsed:?} in {}", text(written));
    assert!(!written.contains(&b'\n') && !written.contains(&b'\r'), "a line break in {}", text(written));
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
