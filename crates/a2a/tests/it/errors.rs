//! Errors as the specification prints them, typed by hand.

use switchboard_a2a::jsonrpc::RpcId;
use switchboard_a2a::{Dialect, Error, ErrorKind};

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_v1_error_carries_error_info() {
    let error = Error::task_not_found("t9");
    assert_eq!(
        text(error.encode_json_rpc(Dialect::V1, &RpcId::number(1))),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"taskId":"t9"}}]}}"#
    );
    let error = Error { message: "no such task".to_owned(), ..error };
    assert_eq!(
        text(error.encode_rest(Dialect::V1)),
        r#"{"error":{"code":404,"status":"NOT_FOUND","message":"no such task","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"taskId":"t9"}}]}}"#
    );
}

#[test]
fn wrong_fields_are_named() {
    let error = Error::invalid_field("message.parts", "needs at least one part");
    assert_eq!(
        text(error.encode_json_rpc(Dialect::V1, &RpcId::NULL)),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"Invalid parameters: message.parts: needs at least one part","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_PARAMS","domain":"a2a-protocol.org"},{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.parts","description":"needs at least one part"}]}]}}"#
    );
}

#[test]
fn a_v03_error_is_plain() {
    let rest = text(Error::new(ErrorKind::TaskNotCancelable).encode_rest(Dialect::V03Rest));
    assert_eq!(rest, r#"{"code":-32002,"message":"Task cannot be canceled"}"#);
    let busy = Error::overloaded("the queue is full", 1500);
    assert_eq!(
        text(busy.encode_json_rpc(Dialect::V03Rpc, &RpcId::number(2))),
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the queue is full","data":{"retryAfterMs":"1500"}}}"#
    );
    for kind in [ErrorKind::ExtensionRequired, ErrorKind::VersionNotSupported] {
        for dialect in [Dialect::V03Rpc, Dialect::V03Rest] {
            assert_eq!(kind.code(dialect), -32603, "v0.3 does not know {kind:?}");
        }
    }
}

#[test]
fn a_v03_error_without_a_code_of_its_own_gives_its_reason() {
    let reused = Error::with_message(ErrorKind::IdempotencyKeyReused, "another body");
    assert_eq!(
        text(reused.encode_json_rpc(Dialect::V03Rpc, &RpcId::number(3))),
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"another body","data":{"reason":"IDEMPOTENCY_KEY_REUSED"}}}"#
    );
    let large = Error::with_message(ErrorKind::TooLarge, "too much").detail("maxBytes", 4096);
    assert_eq!(
        text(large.encode_rest(Dialect::V03Rest)),
        r#"{"code":-32600,"message":"too much","data":{"reason":"REQUEST_TOO_LARGE","maxBytes":"4096"}}"#
    );
    let missing = text(Error::task_not_found("t9").encode_rest(Dialect::V03Rest));
    assert_eq!(missing, r#"{"code":-32001,"message":"Task not found","data":{"taskId":"t9"}}"#);
}

#[test]
fn codes_reasons_and_statuses_are_those_of_the_specification() {
    // code, reason, v1.0 status, gRPC, v0.3 REST status
    let table = [
        (ErrorKind::Parse, -32700, "PARSE_ERROR", 400, "INVALID_ARGUMENT", 400),
        (ErrorKind::InvalidRequest, -32600, "INVALID_REQUEST", 400, "INVALID_ARGUMENT", 400),
        (ErrorKind::MethodNotFound, -32601, "METHOD_NOT_FOUND", 404, "NOT_FOUND", 404),
        (ErrorKind::InvalidParams, -32602, "INVALID_PARAMS", 400, "INVALID_ARGUMENT", 400),
        (ErrorKind::Internal, -32603, "INTERNAL_ERROR", 500, "INTERNAL", 500),
        (ErrorKind::TaskNotFound, -32001, "TASK_NOT_FOUND", 404, "NOT_FOUND", 404),
        (ErrorKind::TaskNotCancelable, -32002, "TASK_NOT_CANCELABLE", 400, "FAILED_PRECONDITION", 409),
        (ErrorKind::PushNotSupported, -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED", 400, "FAILED_PRECONDITION", 400),
        (ErrorKind::UnsupportedOperation, -32004, "UNSUPPORTED_OPERATION", 400, "FAILED_PRECONDITION", 400),
        (ErrorKind::ContentTypeNotSupported, -32005, "CONTENT_TYPE_NOT_SUPPORTED", 400, "INVALID_ARGUMENT", 400),
        (ErrorKind::InvalidAgentResponse, -32006, "INVALID_AGENT_RESPONSE", 500, "INTERNAL", 500),
        (
            ErrorKind::ExtendedCardNotConfigured,
            -32007,
            "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            400,
            "FAILED_PRECONDITION",
            404,
        ),
        (ErrorKind::ExtensionRequired, -32008, "EXTENSION_SUPPORT_REQUIRED", 400, "FAILED_PRECONDITION", 500),
        (ErrorKind::VersionNotSupported, -32009, "VERSION_NOT_SUPPORTED", 400, "FAILED_PRECONDITION", 500),
        (ErrorKind::Unauthenticated, -32600, "UNAUTHENTICATED", 401, "UNAUTHENTICATED", 401),
        (ErrorKind::PermissionDenied, -32600, "PERMISSION_DENIED", 403, "PERMISSION_DENIED", 403),
        (ErrorKind::SkillNotOffered, -32602, "SKILL_NOT_OFFERED", 400, "INVALID_ARGUMENT", 400),
        (ErrorKind::Cooldown, -32603, "COOLDOWN", 429, "RESOURCE_EXHAUSTED", 429),
        (ErrorKind::TooLarge, -32600, "REQUEST_TOO_LARGE", 413, "RESOURCE_EXHAUSTED", 413),
        (ErrorKind::HeadersTooLarge, -32600, "REQUEST_HEADERS_TOO_LARGE", 431, "RESOURCE_EXHAUSTED", 431),
        (ErrorKind::RequestTimeout, -32600, "REQUEST_TIMEOUT", 408, "DEADLINE_EXCEEDED", 408),
        (ErrorKind::Overloaded, -32603, "OVERLOADED", 503, "UNAVAILABLE", 503),
        (ErrorKind::IdempotencyKeyReused, -32602, "IDEMPOTENCY_KEY_REUSED", 409, "ALREADY_EXISTS", 409),
    ];
    for (kind, code, reason, http, grpc, http_v03) in table {
        let entry = kind.entry();
        assert_eq!((kind.code(Dialect::V1), entry.reason, entry.grpc), (code, reason, grpc));
        assert_eq!(kind.http_status(Dialect::V1), http, "{kind:?}");
        assert_eq!(kind.http_status(Dialect::V03Rest), http_v03, "{kind:?}");
        assert_eq!(ErrorKind::from_reason(reason), Some(kind));
    }
    assert_eq!(ErrorKind::from_code(-32603), Some(ErrorKind::Internal));
    assert_eq!(ErrorKind::from_code(-32000), None);
}
