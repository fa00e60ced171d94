//! The trace context of a message: which larger piece of work it is part of, as its sender's request says.
//!
//! It is stored with the message and not kept with the connection, so that a recovered turn, a feed and the calls that an
//! agent makes can go on with it. It is a claim of the sender: nothing is decided by it, and it is no part of what makes
//! two sends the same.

use serde::{Deserialize, Serialize};

/// The length of a `traceparent` of version 00, and of what is known of later ones.
const TRACEPARENT_BYTES: usize = 55;
/// The one flag that later versions are known to keep.
const SAMPLED: u8 = 1;

/// What a request says of the work that it belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceContext {
    /// Correlates everything that one request has caused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The id of what caused this message, in the words of its sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// The W3C trace that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Traceparent>,
}

impl TraceContext {
    /// Whether it says nothing; such a one is not stored.
    pub fn is_empty(&self) -> bool {
        self.correlation_id.is_none() && self.parent_id.is_none() && self.traceparent.is_none()
    }

    /// The same, with what it does not say as another one says it.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self {
            correlation_id: self.correlation_id.or_else(|| other.correlation_id.clone()),
            parent_id: self.parent_id.or_else(|| other.parent_id.clone()),
            traceparent: self.traceparent.or_else(|| other.traceparent.clone()),
        }
    }
}

/// A valid `traceparent` of W3C Trace Context, in the form of version 00: always 55 characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traceparent(String);

impl Traceparent {
    /// Reads one of any version. Nothing if it is malformed: the specification wants it ignored then. Of a version that is
    /// not known here only what version 00 says is kept, as the specification demands.
    pub fn parse(text: &str) -> Option<Self> {
        let (known, more) = text.split_at_checked(TRACEPARENT_BYTES)?;
        let mut fields = known.split('-');
        let [version, trace_id, parent_id, flags] = [fields.next()?, fields.next()?, fields.next()?, fields.next()?];
        let is_written = is_hex(version, 2) && is_id(trace_id, 32) && is_id(parent_id, 16) && is_hex(flags, 2);
        if !is_written || version == "ff" {
            return None;
        }
        if version == "00" {
            return more.is_empty().then(|| Self(known.to_owned()));
        }
        if !more.is_empty() && !more.starts_with('-') {
            return None;
        }
        let sampled = u8::from_str_radix(flags, 16).ok()? & SAMPLED;
        Some(Self(format!("00-{trace_id}-{parent_id}-{sampled:02x}")))
    }

    /// The value of the header.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Only lower case is hexadecimal to the specification.
fn is_hex(field: &str, length: usize) -> bool {
    field.len() == length && field.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// An id of zeros only stands for none.
fn is_id(field: &str, length: usize) -> bool {
    is_hex(field, length) && field.bytes().any(|byte| byte != b'0')
}
