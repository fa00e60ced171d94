//! The client side of JSON-RPC: requests of our own, and the responses of peers.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{RpcId, depth_exceeds, present, write_prefix};
use crate::{Error, lenient};

/// The response of a peer.
#[derive(Debug)]
pub struct Response<'a> {
    /// Which request it answers; absent where the peer left it out or sent what is no id.
    pub id: Option<RpcId>,
    /// The result, none where it is absent or `null`; or the peer's error. Where both are there, the error counts.
    pub outcome: Result<Option<&'a RawValue>, Error>,
}

/// Why bytes are not a response.
#[derive(Debug, thiserror::Error)]
pub enum ResponseError {
    /// Objects and arrays nested beyond the limit.
    #[error("the answer is nested deeper than {limit} levels, the most that is read")]
    TooDeep {
        /// The most that is read.
        limit: usize,
    },
    /// Not an object in JSON.
    #[error("the answer is no JSON object: {0}")]
    NotAnObject(serde_json::Error),
    /// JSON of something else, such as a gateway's.
    #[error("the answer has neither jsonrpc, a result nor an error")]
    NotAResponse,
}

/// Writes a request; without parameters if there are no bytes of them.
pub fn write_request(id: &RpcId, method: &str, params: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(params.len() + method.len() + 64);
    write_prefix(id, b",\"method\":", &mut bytes);
    crate::write_json::append(&mut bytes, method);
    if !params.is_empty() {
        bytes.extend_from_slice(b",\"params\":");
        bytes.extend_from_slice(params);
    }
    bytes.push(b'}');
    bytes
}

/// Reads an answer without copying its result.
pub fn parse_response(body: &[u8], max_depth: usize) -> Result<Response<'_>, ResponseError> {
    if depth_exceeds(body, max_depth) {
        return Err(ResponseError::TooDeep { limit: max_depth });
    }
    let members: Members<'_> = lenient::object_from_slice(body).map_err(ResponseError::NotAnObject)?;
    let error = members.error.filter(|error| error.get() != "null");
    if members.jsonrpc.is_none() && members.result.is_none() && error.is_none() {
        return Err(ResponseError::NotAResponse);
    }
    let outcome = match error {
        Some(error) => Err(Error::read(error.get())),
        None => Ok(members.result.filter(|result| result.get() != "null")),
    };
    Ok(Response { id: members.id.and_then(RpcId::read), outcome })
}

#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}
