//! The JSON-RPC envelope: any body gets an answer that is JSON, under the caller's own id where it has one.

use switchboard_a2a::jsonrpc::{depth_exceeds, parse, write_result_prefix};
use switchboard_a2a::{Dialect, Operation, decode_params};

use super::stable::one_line_of_json;

/// Reads a request, and its parameters as its method says.
pub fn target(data: &[u8]) {
    depth_exceeds(data, 64);
    let envelope = match parse(data) {
        Ok(envelope) => envelope,
        Err(rejected) => {
            for dialect in Dialect::ALL {
                one_line_of_json(&rejected.error.encode_json_rpc(dialect, &rejected.id));
            }
            return;
        }
    };
    let mut answer = Vec::new();
    write_result_prefix(&envelope.id, &mut answer);
    answer.extend_from_slice(b"null}");
    one_line_of_json(&answer);
    let Some((version, operation)) = Operation::from_method(&envelope.method) else {
        return;
    };
    let dialect = version.rpc_dialect();
    if let Err(error) = decode_params(dialect, operation, envelope.params) {
        one_line_of_json(&error.encode_json_rpc(dialect, &envelope.id));
    }
}
