//! The JSON-RPC envelope: what is refused, with which code and under which id.

use switchboard_a2a::jsonrpc::{self, RpcId, depth_exceeds};

#[test]
fn a_request_is_read_without_touching_its_parameters() {
    let body = br#" {"params":{"a" : [1, 2]},"id":"x\"y","method":"SendMessage","jsonrpc":"2.0","extra":1} "#;
    let envelope = jsonrpc::parse(body).unwrap();
    assert_eq!(envelope.id.as_str(), r#""x\"y""#);
    assert_eq!(envelope.method, "SendMessage");
    assert_eq!(envelope.params.unwrap().get(), r#"{"a" : [1, 2]}"#);
    let mut bytes = Vec::new();
    jsonrpc::write_result_prefix(&envelope.id, &mut bytes);
    bytes.extend_from_slice(b"null}");
    assert_eq!(bytes, br#"{"jsonrpc":"2.0","id":"x\"y","result":null}"#);
}

#[test]
fn ids_are_echoed_exactly() {
    for id in ["1", "-7", "18446744073709551617", "null", "\"\"", "\"\\u00e9\""] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        assert_eq!(jsonrpc::parse(body.as_bytes()).unwrap().id.as_str(), id);
    }
}

#[test]
fn what_is_no_request_is_refused_with_the_right_code() {
    let cases = [
        ("", -32700, "null"),
        ("{", -32700, "null"),
        ("nope", -32700, "null"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m""#, -32700, "null"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m"} x"#, -32700, "null"),
        ("[]", -32600, "null"),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#, -32600, "null"),
        ("[1,", -32700, "null"),
        ("7", -32600, "null"),
        ("\"text\"", -32600, "null"),
        (r#"{"jsonrpc":"1.0","method":"m"}"#, -32600, "null"),
        (r#"{"jsonrpc":"2.0","method":7}"#, -32600, "null"),
        (r#"{"jsonrpc":"2.0","method":"m","params":[]}"#, -32602, "null"),
        (r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, -32600, "null"),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, -32600, "null"),
        (r#"{"jsonrpc":"2.0","id":1e3,"method":"m"}"#, -32600, "null"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, -32600, "null"),
        (r#"{"id":1,"method":"m"}"#, -32600, "1"),
        (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, -32600, "1"),
        (r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#, -32600, "1"),
        (r#"{"jsonrpc":"2.0","id":"a","method":7}"#, -32600, "\"a\""),
        (r#"{"jsonrpc":"2.0","id":"a"}"#, -32600, "\"a\""),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, -32600, "null"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#, -32602, "1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}"#, -32602, "1"),
    ];
    for (body, code, id) in cases {
        let rejected = jsonrpc::parse(body.as_bytes()).expect_err(body);
        assert_eq!(rejected.error.kind.entry().code, code, "{body}");
        assert_eq!(rejected.id.as_str(), id, "{body}");
    }
    assert!(jsonrpc::parse(br#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#).unwrap().params.is_none());
    assert_eq!(RpcId::number(3).as_str(), "3");
}

#[test]
fn a_request_without_an_id_is_marked_and_one_with_a_null_id_is_not() {
    let notification = jsonrpc::parse(br#"{"jsonrpc":"2.0","method":"m","params":{}}"#).unwrap();
    assert!(notification.is_notification);
    assert_eq!((notification.id.as_str(), &*notification.method), ("null", "m"));
    assert_eq!(jsonrpc::notification_refused().kind.entry().code, -32600);
    assert!(!jsonrpc::parse(br#"{"jsonrpc":"2.0","id":null,"method":"m"}"#).unwrap().is_notification);
}

#[test]
fn nesting_is_counted_outside_strings_only() {
    assert!(!depth_exceeds(br#"{"a":["[[[[[[",{"b":"\"{{{"}]}"#, 3));
    assert!(depth_exceeds(br#"{"a":[[{}]]}"#, 3));
    assert!(!depth_exceeds(br#"{"a":[[{}]]}"#, 4));
    assert!(!depth_exceeds(b"", 0));
}
