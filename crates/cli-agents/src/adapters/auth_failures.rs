//! How often a model's endpoint has rejected a program's credentials.
//!
//! Programs retry that like any other failure, some for more than a minute. One rejection may be a token that expired
//! and is renewed; after a second one the same credentials would be rejected for ever, so the turn ends.

/// So many rejections in a row end the turn.
const MOST: u32 = 2;

/// What errors say, in small letters, if the credentials were rejected.
const SIGNS: [&str; 10] = [
    "unauthorized",
    "unauthenticated",
    "authentication_error",
    "authentication_failed",
    "authentication failed",
    "invalid api key",
    "incorrect api key",
    "invalid x-api-key",
    "api key not valid",
    "api_key_invalid",
];

/// Rejections without an answer of the model between them.
#[derive(Debug, Default)]
pub(crate) struct AuthFailures(u32);

impl AuthFailures {
    /// Counts one more. Returns whether the turn is to end.
    pub(crate) fn add(&mut self) -> bool {
        self.0 += 1;
        self.0 >= MOST
    }

    /// The model has answered.
    pub(crate) fn reset(&mut self) {
        self.0 = 0;
    }
}

/// Whether an error that a program reports says that its credentials were rejected.
pub(crate) fn is_auth_failure(error: &str) -> bool {
    let error = error.to_lowercase();
    SIGNS.iter().any(|sign| error.contains(sign))
}
