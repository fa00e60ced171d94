//! Request ids: the caller's own if it is sane, else a new one. The same id is in the response and the log.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::BytesMut;
use http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longer ids are replaced: they would fill the log.
const LONGEST: usize = 128;

/// Makes ids that no other process makes: a random prefix and a number. No randomness is needed per request.
pub(crate) struct RequestIds {
    prefix: String,
    next: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new() -> Self {
        let random = uuid::Uuid::new_v4().simple().to_string();
        let mut prefix = random[..12].to_owned();
        prefix.push('-');
        Self { prefix, next: AtomicU64::new(1) }
    }

    pub(crate) fn name(&self, headers: &HeaderMap) -> HeaderValue {
        match headers.get(X_REQUEST_ID) {
            Some(given) if is_sane(given.as_bytes()) => given.clone(),
            _ => self.make(),
        }
    }

    fn make(&self) -> HeaderValue {
        use std::fmt::Write;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut name = BytesMut::with_capacity(self.prefix.len() + 20);
        name.extend_from_slice(self.prefix.as_bytes());
        // Writing to a growing buffer does not fail.
        let _ = write!(name, "{number}");
        HeaderValue::from_maybe_shared(name.freeze()).unwrap_or_else(|_| HeaderValue::from_static("unnamed"))
    }
}

/// Only what cannot break out of a log line, a shell or a page.
fn is_sane(name: &[u8]) -> bool {
    let fine = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=@".contains(byte);
    !name.is_empty() && name.len() <= LONGEST && name.iter().all(fine)
}
