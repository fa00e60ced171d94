//! The JSON-RPC envelope: read without copying the parameters, written around bytes that are already encoded.

mod depth;
mod id;
mod response;

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{Error, ErrorKind};

pub use depth::depth_exceeds;
pub(crate) use depth::hides_nesting;
pub use id::RpcId;
pub use response::{Response, ResponseError, parse_response, write_request};

/// The longest id that is accepted. It is echoed in every frame of a stream, so a long one would multiply the memory that
/// one request costs.
const ID_BYTES: usize = 1_024;

/// One request.
#[derive(Debug)]
pub struct Envelope<'a> {
    /// Echoed in the answer.
    pub id: RpcId,
    /// The method name.
    pub method: Cow<'a, str>,
    /// The parameters, an object; absent and `null` are the same.
    pub params: Option<&'a RawValue>,
    /// Whether it came without an id. The caller could not match a response, so it must not be executed; a wrong method
    /// or wrong parameters are still reported first, because those are what its author has to fix.
    pub is_notification: bool,
}

/// A body that is no request, and the id to answer under.
#[derive(Debug)]
pub struct RejectedRequest {
    /// The id if it could be read, else `null`.
    pub id: RpcId,
    /// What is wrong.
    pub error: Error,
}

/// Reads one request. Batches are refused; a notification is marked, for the caller to refuse it once it is read.
pub fn parse(body: &[u8]) -> Result<Envelope<'_>, RejectedRequest> {
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => {}
        Some(b'[') => return Err(not_an_object(body, "batch requests are not supported, send one object")),
        _ => return Err(not_an_object(body, "a request must be a JSON object")),
    }
    let members: Members = serde_json::from_slice(body).map_err(|error| {
        let kind = if error.is_data() { ErrorKind::InvalidRequest } else { ErrorKind::Parse };
        RejectedRequest { id: RpcId::NULL, error: with_parser_message(kind, &error) }
    })?;
    let is_notification = members.id.is_none();
    let id = match members.id.map(RpcId::read) {
        None => RpcId::NULL,
        Some(None) => return Err(invalid(RpcId::NULL, "id must be a string, an integer or null")),
        Some(Some(id)) if id.as_str().len() > ID_BYTES => {
            return Err(invalid(RpcId::NULL, &format!("id must have at most {ID_BYTES} bytes")));
        }
        Some(Some(id)) => id,
    };
    if members.jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
        return Err(invalid(id, "jsonrpc must be \"2.0\""));
    }
    let Some(method) = members.method.and_then(text) else {
        return Err(invalid(id, "method must be a string"));
    };
    let params = members.params.filter(|params| params.get() != "null");
    if params.is_some_and(|params| !params.get().starts_with('{')) {
        return Err(RejectedRequest { id, error: Error::invalid_field("params", "must be an object") });
    }
    Ok(Envelope { id, method, params, is_notification })
}

/// The error for a notification without any other fault.
pub fn notification_refused() -> Error {
    invalid(RpcId::NULL, "id is missing: notifications are not supported").error
}

/// Writes everything that stands before a result; the caller appends the result and `}`.
pub fn write_result_prefix(id: &RpcId, bytes: &mut Vec<u8>) {
    write_prefix(id, b",\"result\":", bytes);
}

/// Writes an envelope up to the value of the member that follows the id.
pub(crate) fn write_prefix(id: &RpcId, member: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    bytes.extend_from_slice(id.as_str().as_bytes());
    bytes.extend_from_slice(member);
}

#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
}

/// Keeps `null` apart from absent, which a plain `Option` would not.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    match inner.contains('\\') {
        false => Some(Cow::Borrowed(inner)),
        true => serde_json::from_str(raw.get()).ok().map(Cow::Owned),
    }
}

fn invalid(id: RpcId, what: &str) -> RejectedRequest {
    let message = format!("{}: {what}", ErrorKind::InvalidRequest.entry().message);
    RejectedRequest { id, error: Error::with_message(ErrorKind::InvalidRequest, message) }
}

fn not_an_object(body: &[u8], what: &str) -> RejectedRequest {
    match serde_json::from_slice::<serde::de::IgnoredAny>(body) {
        Ok(_) => invalid(RpcId::NULL, what),
        Err(error) => RejectedRequest { id: RpcId::NULL, error: with_parser_message(ErrorKind::Parse, &error) },
    }
}

fn with_parser_message(kind: ErrorKind, error: &serde_json::Error) -> Error {
    Error::with_message(kind, format!("{}: {error}", kind.entry().message))
}
