//! Ids in paths and values in queries: everything but plain letters, digits and four marks is escaped.

use crate::Dialect;
use crate::request::Unsayable;

/// Adds a segment. An id that a URL parser would take for a step to another folder, or a resource name of v0.3 for two
/// ids, is refused.
pub(super) fn push_segment(
    path: &mut String,
    dialect: Dialect,
    field: &'static str,
    id: &str,
) -> Result<(), Unsayable> {
    if matches!(id, "" | "." | "..") || (dialect == Dialect::V03Rest && id.contains('/')) {
        return Err(Unsayable::Segment { field, id: id.to_owned(), dialect });
    }
    path.push('/');
    escape(path, id);
    Ok(())
}

/// Adds text so that it means itself, in a path and in a query.
pub(super) fn escape(target: &mut String, text: &str) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            target.push(char::from(byte));
        } else {
            target.push('%');
            target.push(char::from(DIGITS[usize::from(byte >> 4)]));
            target.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}
