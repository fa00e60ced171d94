//! The secret of a key: 256 random bits with a prefix that people and secret scanners recognise.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use switchboard_engine::sha256;

const KEY_PREFIX: &str = "a2a_";
/// Length of the part that lists show, to tell keys apart: 36 of the 256 bits.
const SHOWN_LENGTH: usize = KEY_PREFIX.len() + 6;

/// A new key, in the clear: to be shown once.
pub(crate) fn generate() -> Result<String, getrandom::Error> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits)?;
    Ok(format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(bits)))
}

/// The beginning of a key, for lists.
pub(crate) fn prefix(secret: &str) -> &str {
    secret.get(..SHOWN_LENGTH).unwrap_or(KEY_PREFIX)
}

/// The stored digest of a key. A fast hash is enough: 256 random bits cannot be guessed.
pub(crate) fn digest(token: &str) -> [u8; 32] {
    sha256([token.as_bytes()])
}

/// A name for a key that says nothing about its secret.
pub(crate) fn new_id() -> Result<String, getrandom::Error> {
    let mut bits = [0; 6];
    getrandom::fill(&mut bits)?;
    let digits: Vec<String> = bits.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("key_{}", digits.concat()))
}
