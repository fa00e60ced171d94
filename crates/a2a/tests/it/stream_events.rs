//! What an event of a stream means, in every form peers have been seen to send.

use proptest::prelude::*;
use switchboard_a2a::jsonrpc::RpcId;
use switchboard_a2a::sse::{Event, Frame};
use switchboard_a2a::{Dialect, Error, ErrorKind, StreamResponse, TaskState, TaskStatusUpdate, decode, encode};

use crate::capture;
use crate::sse::read;

fn named(name: &str, data: &str) -> Event {
    Event { name: Some(name.to_owned()).filter(|name| !name.is_empty()), data: data.to_owned(), ..Event::default() }
}

fn decoded(name: &str, data: &str) -> Frame {
    named(name, data).decode(Dialect::V1).unwrap_or_else(|error| panic!("{error} in {data}"))
}

fn response(name: &str, data: &str) -> StreamResponse {
    match decoded(name, data) {
        Frame::Response(response) => *response,
        other => panic!("{other:?} from {data}"),
    }
}

fn status(name: &str, data: &str) -> TaskStatusUpdate {
    match response(name, data) {
        StreamResponse::StatusUpdate(update) => update,
        other => panic!("{other:?} from {data}"),
    }
}

fn error(name: &str, data: &str) -> Error {
    match decoded(name, data) {
        Frame::Error(error) => error,
        other => panic!("{other:?} from {data}"),
    }
}

#[test]
fn every_event_of_the_sdks_is_a_frame_or_an_error() {
    let (mut frames, mut errors) = (0, 0);
    for capture in capture::all("client-").into_iter().chain(capture::all("server-")) {
        for exchange in &capture.exchanges {
            if !exchange.response_head.to_lowercase().contains("text/event-stream") {
                continue;
            }
            let (dialect, ..) = exchange.decode();
            let mut results = exchange.results().into_iter();
            for event in read(1 << 20, [&exchange.response_body[..]]).0 {
                match event.decode(dialect).unwrap_or_else(|error| panic!("{}: {error}", capture.name)) {
                    Frame::Response(response) => {
                        let bare = serde_json::to_vec(&results.next().unwrap()).unwrap();
                        let expected = decode::decode_stream(dialect, &bare).unwrap();
                        // As values, whose keys have no order: the capture's own parser has lost it.
                        let value = |frame| serde_json::to_value::<&StreamResponse>(frame).unwrap();
                        assert_eq!(value(&response), value(&expected), "{}", capture.name);
                        frames += 1;
                    }
                    Frame::Error(error) => {
                        assert_eq!(error.kind, ErrorKind::TaskNotFound, "{}", capture.name);
                        errors += 1;
                    }
                    other => panic!("{}: {other:?}", capture.name),
                }
            }
        }
    }
    assert!(frames > 200 && errors > 1, "{frames} frames, {errors} errors");
}

#[test]
fn envelopes_bare_frames_and_discriminators_mean_the_same() {
    let bare = r#""taskId":"t1","contextId":"c1","status":{"state":"completed"},"final":true"#;
    let expected = status("", &format!("{{{bare}}}"));
    assert_eq!((expected.task_id.as_str(), expected.status.state), ("t1", TaskState::Completed));
    for data in [
        format!(r#"{{"kind":"status-update",{bare}}}"#),
        format!(r#"{{"type":"TaskStatusUpdateEvent",{bare}}}"#),
        format!(r#"{{"statusUpdate":{{{bare}}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":null,"result":{{"statusUpdate":{{{bare}}}}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"error":null,"result":{{{bare}}}}}"#),
        format!(r#"{{"result":{{{bare}}}}}"#),
        format!(r#"{{{bare},"error":"a note of the peer's own"}}"#),
        format!("\n{{\n{bare}\n}}\n"),
    ] {
        for name in ["", "message", "task/status", "status-update", "something-else"] {
            assert_eq!(status(name, &data), expected, "{name} {data}");
        }
    }
    let chunk = r#""taskId":"t1","artifact":{"artifactId":"a1","parts":[{"text":"x"}]},"append":true"#;
    let expected = response("", &format!("{{{chunk}}}"));
    assert!(matches!(&expected, StreamResponse::ArtifactUpdate(update) if update.append));
    for data in [
        format!(r#"{{"kind":"artifact-update",{chunk}}}"#),
        format!(r#"{{"type":"TaskArtifactUpdateEvent",{chunk}}}"#),
        format!(r#"{{"artifactUpdate":{{{chunk}}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{{chunk}}}}}"#),
    ] {
        for name in ["", "task/artifact", "artifact-update"] {
            assert_eq!(response(name, &data), expected, "{name} {data}");
        }
    }
    let task = r#"{"id":"t1","status":{"state":"working"}}"#;
    assert!(matches!(response("task/status", &format!(r#"{{"task":{task}}}"#)), StreamResponse::Task(_)));
    assert!(matches!(response("task", task), StreamResponse::Task(_)));
    let message = r#"{"messageId":"m1","role":"agent","parts":[{"kind":"text","text":"hi"}]}"#;
    assert!(matches!(response("message", message), StreamResponse::Message(_)));
    assert!(matches!(response("task/status", &format!(r#"{{"message":{message}}}"#)), StreamResponse::Message(_)));
}

#[test]
fn a_named_event_needs_no_discriminator() {
    for data in [
        r#"{"taskId":"t1","status":{"state":"input-required"}}"#,
        r#"{"id":"t1","status":{"state":"input-required"},"final":true}"#,
        r#"{"id":"t1","kind":"status-update","status":{"state":"input-required"}}"#,
        r#"{"id":"t1","state":"input-required","final":false}"#,
        r#"{"id":"t1","status":"input-required"}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"id":"t1","status":{"state":"input-required"}}}"#,
    ] {
        let update = status("task/status", data);
        assert_eq!((update.task_id.as_str(), update.status.state), ("t1", TaskState::InputRequired), "{data}");
    }
    let asked = r#"{"state":"working","message":{"messageId":"m1","role":"agent","parts":[{"text":"hm"}]}}"#;
    let update = status("task/status", asked);
    assert_eq!((update.task_id.as_str(), update.status.state), ("", TaskState::Working));
    assert_eq!(update.status.message.unwrap().message_id.as_str(), "m1");
    for data in [
        r#"{"taskId":"t1","artifact":{"artifactId":"a1","parts":[{"kind":"text","text":"x"}]},"lastChunk":true}"#,
        r#"{"id":"t1","artifact":{"artifactId":"a1","parts":[{"type":"text","text":"x"}]},"lastChunk":true}"#,
        r#"{"id":"t1","artifactId":"a1","parts":[{"text":"x"}],"lastChunk":true}"#,
    ] {
        let StreamResponse::ArtifactUpdate(update) = response("task/artifact", data) else { panic!("{data}") };
        assert_eq!((update.task_id.as_str(), update.artifact.artifact_id.as_str()), ("t1", "a1"), "{data}");
        assert!(update.artifact.parts.len() == 1 && update.last_chunk && !update.append, "{data}");
    }
    let nested = r#"{"id":"t1","artifact":{"artifactId":"a1","parts":[{"data":{"data":{"n":1}}}]}}"#;
    let frame = named("task/artifact", nested).decode(Dialect::V03Rest).unwrap();
    let wrapped = format!(r#"{{"artifactUpdate":{}}}"#, nested.replace("\"id\"", "\"taskId\""));
    let expected = decode::decode_stream(Dialect::V03Rest, wrapped.as_bytes()).unwrap();
    assert_eq!(frame, Frame::Response(Box::new(expected)));
}

#[test]
fn errors_are_typed_however_they_are_written() {
    let envelope = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"gone","data":{"taskId":"t1"}}}"#;
    let expected = Error::with_message(ErrorKind::TaskNotFound, "gone").detail("taskId", "t1");
    for (name, data) in [
        ("", envelope),
        ("error", envelope),
        ("task/error", envelope),
        ("task/status", envelope),
        ("something-else", envelope),
        ("task/error", r#"{"code":-32001,"message":"gone","data":{"taskId":"t1"}}"#),
        ("", r#"{"code":-32001,"message":"gone","data":{"taskId":"t1"}}"#),
        ("error", r#"{"error":{"code":404,"message":"gone","data":{"taskId":"t1"}}}"#),
        ("", r#"{"error":{"code":"TASK_NOT_FOUND","message":"gone","data":{"taskId":"t1"}}}"#),
    ] {
        assert_eq!(error(name, data), expected, "{name} {data}");
    }
    let internal = |message: &str| Error::with_message(ErrorKind::Internal, message);
    assert_eq!(error("", r#"{"error":"the model is down"}"#), internal("the model is down"));
    assert_eq!(error("task/error", r#"{"taskId":"t1","error":"down"}"#), internal("down"));
    assert_eq!(error("task/error", r#"{"message":"down"}"#), internal("down"));
    assert_eq!(error("task/error", r#""down""#), internal("down"));
    assert_eq!(error("error", "down\nagain"), internal("down\nagain"));
    assert_eq!(error("task/error", r#"{"why":1}"#), internal(r#"{"why":1}"#));
    assert_eq!(error("task/error", ""), Error::new(ErrorKind::Internal));
    let unknown = Error { received_code: Some(-32050), ..internal("odd").detail("data", "[1]").detail("code", -32050) };
    assert_eq!(error("", r#"{"jsonrpc":"2.0","error":{"code":-32050,"message":"odd","data":[1]}}"#), unknown);
    let reason =
        r#"{"error":{"code":418,"details":[{"@type":"x/google.rpc.ErrorInfo","reason":"TEAPOT","domain":"d"}]}}"#;
    let expected = Error::new(ErrorKind::Internal).detail("reason", "TEAPOT").detail("code", 418);
    let expected = Error { received_code: Some(418), ..expected };
    assert_eq!(error("", reason), expected);
}

#[test]
fn our_own_errors_come_back_whole() {
    for kind in ErrorKind::ALL {
        let mut error = Error::with_message(kind, "what happened").detail("limit", "a.b").violation("c[0]", "is odd");
        if kind == ErrorKind::Overloaded {
            error = error.detail("retryAfterMs", 1500);
        }
        for dialect in Dialect::ALL {
            let back = Error::decode(&error.encode_json_rpc(dialect, &RpcId::number(1))).unwrap();
            assert_eq!(back.code(), i64::from(kind.code(dialect)), "{kind:?} {dialect:?}");
            assert_eq!(Error { received_code: None, ..back }, error, "{dialect:?}");
            let back = Error::decode(&error.encode_rest(dialect)).unwrap();
            assert_eq!(Error { received_code: None, ..back }, error, "{dialect:?}");
        }
    }
    for nothing in ["{}", "[]", "null", "7", r#"{"error":null}"#, r#"{"code":null}"#, "{"] {
        assert!(Error::decode(nothing.as_bytes()).is_err(), "{nothing}");
    }
}

#[test]
fn ends_and_silence_are_told_apart_from_nonsense() {
    assert_eq!(decoded("", "[DONE]"), Frame::Done);
    assert_eq!(decoded("message", " [DONE]\n"), Frame::Done);
    assert_eq!(decoded("", ""), Frame::Ignored);
    assert_eq!(decoded("task/status", " "), Frame::Ignored);
    assert_eq!(decoded("heartbeat", r#"{"at":1}"#), Frame::Ignored);
    assert_eq!(decoded("heartbeat", "still here"), Frame::Ignored);
    // Frames of a later version are passed over, not failed on.
    for newer in [r#"{"timelineUpdate":{"taskId":"t1"}}"#, r#"{"kind":"timeline-update","taskId":"t1"}"#] {
        assert_eq!(decoded("", newer), Frame::Ignored);
        assert_eq!(decoded("", &format!(r#"{{"jsonrpc":"2.0","id":1,"result":{newer}}}"#)), Frame::Ignored);
    }
    for (name, data) in [
        ("", "still here"),
        ("", r#"{"task":{"at":1}}"#),
        ("", r#"{"kind":"task","at":1}"#),
        ("", r#"{"one":{},"two":{}}"#),
        ("", r#"{"at":1}"#),
        ("", "[]"),
        ("", r#"{"jsonrpc":"2.0","id":1,"result":null}"#),
        ("", r#"{"jsonrpc":"2.0","id":1,"result":[]}"#),
        ("task/status", r#"{"at":1}"#),
        ("task/artifact", r#"{"artifact":7}"#),
        ("task/status", "[]"),
    ] {
        assert!(named(name, data).decode(Dialect::V1).is_err(), "{name} {data}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_frame_of_ours_is_read_from_its_event(frame in crate::properties::frame(), enveloped in any::<bool>()) {
        for dialect in Dialect::ALL {
            let bare = encode::encode_stream(dialect, &frame, true);
            let expected = decode::decode_stream(dialect, &bare).unwrap();
            let bare = String::from_utf8(bare).unwrap();
            let data = if enveloped { format!(r#"{{"jsonrpc":"2.0","id":1,"result":{bare}}}"#) } else { bare };
            let stream = format!("id: 1.2\ndata: {data}\n\n");
            let (events, failure) = read(1 << 20, [stream.as_bytes()]);
            prop_assert_eq!((events.len(), failure), (1, None));
            prop_assert_eq!(events[0].decode(dialect).unwrap(), Frame::Response(Box::new(expected)));
        }
    }
}
