//! The headers that say which work a message belongs to: in every dialect, sent and streamed.

use serde_json::{Value, json};

use super::dialects::{ALL, Operation, TestDialect};
use super::world::World;

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

type Send = fn(Value) -> Operation<'static>;
const SENDS: [Send; 2] = [Operation::Send, Operation::Stream];

/// The whole answer to a message, be it one object or a stream, with its HTTP status.
async fn answer(
    world: &World,
    dialect: TestDialect,
    send: Send,
    text: &str,
    headers: &[(&str, &str)],
) -> (u16, String) {
    let ask = dialect.ask(world, "", send(json!({"message": dialect.message(text)})));
    let ask = headers.iter().fold(ask, |ask, (name, value)| ask.header(name, value));
    let reply = ask.reply().await;
    (reply.status, String::from_utf8(reply.body.to_vec()).unwrap())
}

async fn total(world: &World) -> Value {
    world.get("/tasks").version("1.0").reply().await.json()["totalSize"].clone()
}

#[tokio::test]
async fn the_agent_is_told_and_the_caller_is_not() {
    let world = World::start().await;
    let longest = "~".repeat(128);
    let all = [("X-Correlation-Id", "order-17"), ("X-Parent-Id", "call-3"), ("traceparent", TRACEPARENT)];
    let later = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-will-be";
    let of_all = format!("order-17 / call-3 / {TRACEPARENT}");
    let of_longest = format!("{longest} / none / none");
    let of_trace = format!("none / none / {TRACEPARENT}");
    for (dialect, send) in ALL.into_iter().flat_map(|dialect| SENDS.map(|send| (dialect, send))) {
        for (headers, told) in [
            (&[][..], "no trace"),
            (&all, of_all.as_str()),
            (&[("x-correlation-id", longest.as_str())], &of_longest),
            (&[("x-parent-id", "a"), ("x-parent-id", "a")], "none / a / none"),
            (&[("traceparent", later)], &of_trace),
            (&[("traceparent", "nonsense")], "no trace"),
            (&[("traceparent", TRACEPARENT), ("traceparent", TRACEPARENT)], "no trace"),
            (&[("traceparent", "nonsense"), ("x-correlation-id", "order-17")], "order-17 / none / none"),
        ] {
            let (status, answer) = answer(&world, dialect, send, "trace", headers).await;
            assert!(status == 200 && answer.contains(&format!("\"{told}\"")), "{dialect:?} {headers:?}: {answer}");
        }
        let (_, answer) = answer(&world, dialect, send, "hello", &all).await;
        assert!(answer.contains("hello back"), "{answer}");
        for (_, value) in all {
            assert!(!answer.contains(value), "{dialect:?}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_trace_in_metadata_counts_where_no_header_has_one() {
    let world = World::start().await;
    let traced = |trace_id: &str, span_id: &str| json!({"a2a.trace": {"traceId": trace_id, "spanId": span_id}});
    let told = traced("4bf92f35-77b3-4da6-a3ce-929d0e0e4736", "00F067AA0BA902B7");
    let of_metadata = "none / none / 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let of_both = format!("order-17 / {}", &of_metadata["none / ".len()..]);
    let of_header = format!("none / none / {TRACEPARENT}");
    for dialect in ALL {
        for (headers, request, message, expected) in [
            (&[][..], told.clone(), json!({}), of_metadata),
            (&[], json!({}), told.clone(), of_metadata),
            (&[], told.clone(), traced("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"), of_metadata),
            (&[("x-correlation-id", "order-17")], told.clone(), json!({}), &of_both),
            (&[("traceparent", TRACEPARENT)], told.clone(), told.clone(), &of_header),
            (&[("traceparent", "nonsense")], told.clone(), json!({}), of_metadata),
            (&[], traced("t", "s"), told.clone(), of_metadata),
            (&[], traced("t", "s"), json!({"a2a.trace": 7}), "no trace"),
        ] {
            let mut sent = dialect.message("trace");
            sent["metadata"] = message.clone();
            let ask = dialect.ask(&world, "", Operation::Send(json!({"message": sent, "metadata": request})));
            let ask = headers.iter().fold(ask, |ask, (name, value)| ask.header(name, value));
            let answer = String::from_utf8(ask.reply().await.body.to_vec()).unwrap();
            assert!(answer.contains(&format!("\"{expected}\"")), "{dialect:?} {headers:?} {request}: {answer}");
        }
    }
}

#[tokio::test]
async fn an_id_that_cannot_be_kept_is_refused_by_name() {
    let world = World::start().await;
    let long = "x".repeat(129);
    let rule = "must be 1 to 128 visible ASCII characters, without spaces";
    for (dialect, send) in ALL.into_iter().flat_map(|dialect| SENDS.map(|send| (dialect, send))) {
        for name in ["X-Correlation-Id", "X-Parent-Id"] {
            for (values, problem) in [
                (&[""][..], rule),
                (&["order 17"], rule),
                (&["order\t17"], rule),
                (&[long.as_str()], rule),
                (&["a", "b"], "is there more than once, with different ids: send it once"),
            ] {
                let headers: Vec<_> = values.iter().map(|value| (name, *value)).collect();
                let (status, answer) = answer(&world, dialect, send, "trace", &headers).await;
                assert_eq!(status, if dialect.is_rpc() { 200 } else { 400 }, "{dialect:?} {headers:?}: {answer}");
                let told = format!("Invalid parameters: {name}: {problem}");
                assert!(answer.contains(&told), "{dialect:?} {headers:?}: {answer}");
                assert!(answer.contains("-32602") || dialect == TestDialect::RestV1, "{dialect:?}: {answer}");
            }
        }
    }
    assert_eq!(total(&world).await, json!(0));
    let listed = world.get("/tasks").version("1.0").header("x-correlation-id", "order 17").reply().await;
    assert_eq!(listed.status, 200, "only sends read them");
}

#[tokio::test]
async fn a_retry_may_be_a_span_of_its_own() {
    let world = World::start().await;
    for (number, dialect) in (1..).zip(ALL) {
        let key = format!("key {number}");
        let first = [("idempotency-key", key.as_str()), ("x-correlation-id", "order-17")];
        let again = [("idempotency-key", key.as_str()), ("x-correlation-id", "order-18"), ("traceparent", TRACEPARENT)];
        let (_, original) = answer(&world, dialect, Operation::Send, "trace", &first).await;
        let (_, repeated) = answer(&world, dialect, Operation::Send, "trace", &again).await;
        assert!(original.contains("order-17 / none / none"), "{original}");
        assert_eq!(repeated, original, "{dialect:?}");
        assert_eq!(total(&world).await, json!(number));
    }
}
