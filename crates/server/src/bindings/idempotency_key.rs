//! The header that makes a repeated send safe: `Idempotency-Key`.

use http::HeaderMap;
use switchboard_a2a::Error;

/// The longest key that is kept.
const KEY_BYTES: usize = 255;
/// How keys begin that the server makes for its own sends.
const OWN_KEYS: &str = "switchboard:";

/// The key of a request; an empty one is as good as none.
pub fn read(headers: &HeaderMap) -> Result<Option<String>, Error> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    // A proxy may have used another one of them, so none is picked, not even if they are equal.
    if values.next().is_some() {
        return Err(Error::invalid_field("Idempotency-Key", "is there more than once: send it once"));
    }
    if value.is_empty() {
        return Ok(None);
    }
    match value.to_str() {
        Ok(key) if key.starts_with(OWN_KEYS) => {
            let problem = format!("begins with {OWN_KEYS}, which is for the server's own keys: choose another one");
            Err(Error::invalid_field("Idempotency-Key", problem))
        }
        Ok(key) if key.len() <= KEY_BYTES => Ok(Some(key.to_owned())),
        _ => {
            let problem = format!("must be visible ASCII of at most {KEY_BYTES} characters");
            Err(Error::invalid_field("Idempotency-Key", problem))
        }
    }
}
