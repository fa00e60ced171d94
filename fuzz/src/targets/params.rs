//! The parameters of every operation in every dialect.

use serde_json::value::RawValue;
use switchboard_a2a::jsonrpc::RpcId;
use switchboard_a2a::{Dialect, EncodeError, Operation, Request, decode_params, encode_params, encode_rest};

use super::stable::one_line_of_json;

/// Every operation.
pub(super) const OPERATIONS: [Operation; 11] = [
    Operation::SendMessage,
    Operation::SendStreamingMessage,
    Operation::GetTask,
    Operation::ListTasks,
    Operation::CancelTask,
    Operation::SubscribeToTask,
    Operation::CreatePushConfig,
    Operation::GetPushConfig,
    Operation::ListPushConfigs,
    Operation::DeletePushConfig,
    Operation::GetExtendedCard,
];

/// Reads the same object as the parameters of each operation.
pub fn target(data: &[u8]) {
    let Ok(raw) = serde_json::from_slice::<&RawValue>(data) else { return };
    for dialect in Dialect::ALL {
        for operation in OPERATIONS {
            match decode_params(dialect, operation, Some(raw)) {
                Ok(request) => {
                    read(&request);
                    ask(operation, &request);
                }
                Err(error) => {
                    one_line_of_json(&error.encode_json_rpc(dialect, &RpcId::NULL));
                    one_line_of_json(&error.encode_rest(dialect));
                }
            }
        }
    }
}

/// What was accepted is written as v1.0 and must be accepted again as the same.
pub(super) fn read(request: &Request) {
    request.tenant();
    let Request::Send(send) = request else { return };
    let written = serde_json::to_vec(send).unwrap_or_else(|error| panic!("{error} when writing {send:?}"));
    one_line_of_json(&written);
    let raw: &RawValue = serde_json::from_slice(&written).unwrap_or_else(|error| panic!("{error}"));
    let again = decode_params(Dialect::V1, Operation::SendMessage, Some(raw));
    assert_eq!(again.ok().as_ref(), Some(request), "{}", raw.get());
}

/// What was accepted is asked of a peer in every dialect. The peer must accept it, and who asks the peer's peer asks for
/// the same.
pub(super) fn ask(operation: Operation, request: &Request) {
    for dialect in Dialect::ALL {
        let mut request = request.clone();
        request.remove_unsupported(dialect);
        let refused = |error: EncodeError| match error {
            EncodeError::Operation { .. } | EncodeError::Missing { .. } | EncodeError::Segment { .. } => {}
            other => panic!("{other} in {request:?}"),
        };
        match encode_rest(dialect, operation, &request) {
            Ok(call) => call.body.iter().for_each(|body| one_line_of_json(body)),
            Err(error) => refused(error),
        }
        match encode_params(dialect, operation, &request) {
            Ok(params) if params.is_empty() => {}
            Ok(params) => {
                let read = accepted(dialect, operation, &params);
                let again = encode_params(dialect, operation, &read).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(accepted(dialect, operation, &again), read, "{dialect:?}");
            }
            Err(error) => refused(error),
        }
    }
}

fn accepted(dialect: Dialect, operation: Operation, params: &[u8]) -> Request {
    one_line_of_json(params);
    let raw: &RawValue = serde_json::from_slice(params).unwrap_or_else(|error| panic!("{error}"));
    decode_params(dialect, operation, Some(raw)).unwrap_or_else(|error| panic!("{error:?} in {}", raw.get()))
}
