//! Answers of JSON-RPC peers, as strict as they should be and as loose as they are.

use switchboard_a2a::jsonrpc::{Response, ResponseError, RpcId, parse, parse_response, write_request};
use switchboard_a2a::{Error, ErrorKind};

use crate::capture;

fn read(body: &str) -> Response<'_> {
    parse_response(body.as_bytes(), 64).unwrap_or_else(|error| panic!("{error} in {body}"))
}

fn result(body: &str) -> Option<String> {
    let outcome = read(body).outcome;
    outcome.unwrap_or_else(|error| panic!("{error:?} in {body}")).map(|result| result.get().to_owned())
}

#[test]
fn a_request_is_written_as_it_is_read() {
    let bytes = write_request(&RpcId::number(7), "message/send", br#"{"a":1}"#);
    assert_eq!(bytes, br#"{"jsonrpc":"2.0","id":7,"method":"message/send","params":{"a":1}}"#);
    let bytes = write_request(&RpcId::number(8), "agent/getAuthenticatedExtendedCard", b"");
    assert_eq!(bytes, br#"{"jsonrpc":"2.0","id":8,"method":"agent/getAuthenticatedExtendedCard"}"#);
    assert!(parse(&bytes).unwrap().params.is_none());
}

#[test]
fn every_answer_of_the_sdks_is_read() {
    let (mut results, mut errors) = (0, 0);
    for capture in capture::all("client-").into_iter().chain(capture::all("server-")) {
        for exchange in capture.exchanges.iter().filter(|exchange| exchange.is_rpc()) {
            if !exchange.response_head.to_lowercase().contains("application/json") {
                continue;
            }
            let response = parse_response(&exchange.response_body, 64);
            let response = response.unwrap_or_else(|error| panic!("{}: {error}", capture.name));
            let body: serde_json::Value = serde_json::from_slice(&exchange.response_body).unwrap();
            assert_eq!(response.id.unwrap().as_str(), body["id"].to_string(), "{}", capture.name);
            match response.outcome {
                Ok(result) => {
                    let result = result.map(|result| serde_json::from_str::<serde_json::Value>(result.get()).unwrap());
                    assert_eq!(result.unwrap_or_default(), body["result"], "{}", capture.name);
                    results += 1;
                }
                Err(error) => {
                    assert_eq!(error.message, body["error"]["message"].as_str().unwrap(), "{}", capture.name);
                    assert_eq!(error.kind.entry().code, body["error"]["code"], "{}", capture.name);
                    errors += 1;
                }
            }
        }
    }
    assert!(results > 100 && errors > 5, "{results} results, {errors} errors");
}

#[test]
fn a_result_may_be_missing_null_or_beside_a_null_error() {
    assert_eq!(result(r#"{"jsonrpc":"2.0","id":1}"#), None);
    assert_eq!(result(r#"{"jsonrpc":"2.0","id":1,"result":null}"#), None);
    assert_eq!(result(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":null}"#), None);
    assert_eq!(result(r#"{"result":null}"#), None);
    let whole = r#"{"extra":[1],"result":{"a" : 1},"error":null,"id":"x","jsonrpc":"2.0"}"#;
    assert_eq!(result(whole).unwrap(), r#"{"a" : 1}"#);
    assert_eq!(read(whole).id.unwrap().as_str(), "\"x\"");
    assert_eq!(result(r#" {"result":[]} "#).unwrap(), "[]");
    for body in [r#"{"result":1}"#, r#"{"result":1,"id":1.5}"#, r#"{"result":1,"id":{}}"#] {
        assert_eq!(read(body).id, None, "{body}");
    }
    assert_eq!(read(r#"{"result":1,"id":null}"#).id, Some(RpcId::NULL));
}

#[test]
fn an_error_counts_whatever_stands_beside_it() {
    let gone = Error::with_message(ErrorKind::TaskNotFound, "gone");
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"gone"}}"#,
        r#"{"id":1,"result":null,"error":{"code":-32001,"message":"gone"}}"#,
        r#"{"jsonrpc":"2.0","result":{"kind":"task"},"error":{"code":-32001,"message":"gone"}}"#,
        r#"{"error":{"code":-32001,"message":"gone"}}"#,
    ] {
        assert_eq!(read(body).outcome.unwrap_err(), gone, "{body}");
    }
    let internal = |message: &str| Error::with_message(ErrorKind::Internal, message);
    assert_eq!(read(r#"{"error":"the model is down"}"#).outcome.unwrap_err(), internal("the model is down"));
    assert_eq!(read(r#"{"id":1,"error":{}}"#).outcome.unwrap_err(), internal("{}"));
}

#[test]
fn what_is_no_answer_is_refused() {
    for body in ["", "{", "[]", "7", "<html>", r#"{"jsonrpc":"2.0","id":1} x"#, r#"[{"jsonrpc":"2.0","result":1}]"#] {
        let refused = parse_response(body.as_bytes(), 64).expect_err(body);
        assert!(matches!(refused, ResponseError::NotAnObject(_)), "{body}: {refused}");
    }
    for body in ["{}", r#"{"detail":"Not Found"}"#, r#"{"id":1}"#, r#"{"error":null}"#] {
        let refused = parse_response(body.as_bytes(), 64).expect_err(body);
        assert!(matches!(refused, ResponseError::NotAResponse), "{body}: {refused}");
    }
    let deep = format!(r#"{{"jsonrpc":"2.0","result":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let refused = parse_response(deep.as_bytes(), 64).unwrap_err();
    assert_eq!(refused.to_string(), "the answer is nested deeper than 64 levels, the most that is read");
}
