//! Webhooks, which no card here offers: each operation on them says so, as the protocol demands.

use switchboard_a2a::{Error, ErrorKind};

/// The answer to every request about webhooks.
pub(super) fn not_supported() -> Error {
    Error::new(ErrorKind::PushNotSupported)
}
