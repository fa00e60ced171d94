//! Answers of JSON-RPC peers: the envelope, and its result as each operation's answer.

use switchboard_a2a::jsonrpc::{RpcId, parse_response, write_request};
use switchboard_a2a::{Dialect, decode};

use super::stable::one_line_of_json;

/// Reads an answer; an id we would send is one we can write again.
pub fn target(data: &[u8]) {
    let Ok(response) = parse_response(data, 64) else { return };
    let id = response.id.unwrap_or(RpcId::NULL);
    one_line_of_json(&write_request(&id, "GetTask", b"{}"));
    match response.outcome {
        Ok(None) => {}
        Ok(Some(result)) => {
            for dialect in Dialect::ALL {
                let _ = decode::decode_send(dialect, result.get().as_bytes());
                let _ = decode::decode_list(dialect, result.get().as_bytes());
            }
        }
        Err(error) => one_line_of_json(&error.encode_json_rpc(Dialect::V1, &id)),
    }
}
