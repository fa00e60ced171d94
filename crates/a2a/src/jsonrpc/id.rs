//! The id of a JSON-RPC request, kept as the text it came in, so that the echo is exact.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// A string, an integer or `null`, as JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcId(Cow<'static, str>);

impl RpcId {
    /// What an error is answered with when the id could not be read.
    pub const NULL: Self = Self(Cow::Borrowed("null"));

    /// Keeps an id, unless it is of a type that is no id: a boolean, a fraction, an object or an array.
    pub fn read(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        let is_integer = || {
            let digits = text.strip_prefix('-').unwrap_or(text);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        match text {
            "null" => Some(Self::NULL),
            _ if text.starts_with('"') || is_integer() => Some(Self(Cow::Owned(text.to_owned()))),
            _ => None,
        }
    }

    /// A numbered id, for requests of our own.
    pub fn number(number: u64) -> Self {
        Self(Cow::Owned(number.to_string()))
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
