//! Peers whose card does not say what they really speak.

use serde_json::json;
use switchboard_a2a::Version;
use switchboard_client::{Binding, CallContext, response_text};

use super::script::{COMPLETED, Peer, Reply, agent, card, error, events, json as answer, result, says, status, task};
use crate::world::{client, say};

fn old_task() -> serde_json::Value {
    json!({
        "kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"},
        "artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": "done"}]}]
    })
}

#[tokio::test]
async fn the_other_version_is_tried_once_and_remembered() {
    for code in [-32601, -32009] {
        let peer = agent(false, move |asked, _| match asked.what().as_str() {
            "message/send" | "tasks/get" => result(old_task()),
            _ => error(code, "no"),
        })
        .await;
        let client = client(peer.url(), |_| {});
        let outcome = client.send(&CallContext::default(), say("hello")).await.unwrap();
        assert_eq!(response_text(&outcome), "done");
        client.send(&CallContext::default(), say("hello")).await.unwrap();
        client.get(&CallContext::default(), &"t".into(), None).await.unwrap();
        assert_eq!(peer.story(), ["SendMessage", "message/send", "message/send", "tasks/get"], "{code}");
        assert_eq!(client.interface(&CallContext::default()).await.unwrap().version, Version::V03);
    }
}

#[tokio::test]
async fn a_version_that_was_asked_for_is_kept_to() {
    let peer = agent(false, |_, _| error(-32601, "no")).await;
    let client = client(peer.url(), |peer| peer.version = Some(Version::V1));
    client.send(&CallContext::default(), say("hello")).await.unwrap_err();
    assert_eq!(peer.story(), ["SendMessage"]);
}

#[tokio::test]
async fn an_agent_that_knows_neither_version_is_called_in_the_first() {
    let peer = agent(false, |_, _| error(-32601, "no")).await;
    let client = client(peer.url(), |_| {});
    let refused = client.get(&CallContext::default(), &"t".into(), None).await.unwrap_err();
    assert_eq!(refused.error_kind(), Some(switchboard_a2a::ErrorKind::MethodNotFound));
    assert_eq!(peer.story(), ["GetTask", "tasks/get"]);
    assert_eq!(client.interface(&CallContext::default()).await.unwrap().version, Version::V1);
}

#[tokio::test]
async fn a_subscription_is_posted_and_then_got() {
    let peer = agent(false, |asked, _| match asked.line().as_str() {
        "GET /rest/tasks/t:subscribe" => {
            let plain = |frame: serde_json::Value| format!("data: {frame}\n\n");
            events(&[plain(json!({"task": task("TASK_STATE_WORKING", "")})), plain(status(COMPLETED))])
        }
        "GET /rest/tasks/t" => answer(200, &task(COMPLETED, "")),
        _ => says(405, "content-type: text/plain", "method not allowed"),
    })
    .await;
    let client = client(peer.url(), |peer| peer.binding = Some(Binding::Rest));
    for _ in 0..2 {
        let followed = client.subscribe(&CallContext::default(), "t".into()).await.unwrap();
        assert!(followed.finish().await.unwrap().is_success());
    }
    let subscriptions: Vec<_> = peer.story().into_iter().filter(|line| line.ends_with(":subscribe")).collect();
    let (post, get) = ("POST /rest/tasks/t:subscribe", "GET /rest/tasks/t:subscribe");
    assert_eq!(subscriptions, [post, get, get]);
}

#[tokio::test]
async fn a_stream_that_is_answered_whole_is_taken_as_it_is() {
    let peer = agent(false, |_, _| result(json!({"task": task(COMPLETED, "done")}))).await;
    let client = client(peer.url(), |_| {});
    let followed = client.stream(&CallContext::default(), say("hello")).await.unwrap();
    assert_eq!(response_text(&followed.finish().await.unwrap()), "done");
}

#[tokio::test]
async fn an_agent_without_streams_is_sent_the_message_once() {
    let peer = agent(false, |asked, _| match asked.what().as_str() {
        "SendMessage" => result(json!({"task": task(COMPLETED, "done")})),
        _ => error(-32004, "no streams"),
    })
    .await;
    let client = client(peer.url(), |_| {});
    let followed = client.stream(&CallContext::default(), say("hello")).await.unwrap();
    assert_eq!(response_text(&followed.finish().await.unwrap()), "done");
    assert_eq!(peer.story(), ["SendStreamingMessage", "SendMessage"]);
}

/// An agent that refuses streams with the one event of a stream, and says nothing or something about streams on its card.
async fn refuses_within(code: i64, declares: Option<bool>) -> Peer {
    let refusal = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no streams"}});
    let refusal = format!("data: {refusal}\n\n");
    Peer::start(move |asked, _| -> Reply {
        match asked.what().as_str() {
            what if what.contains("/.well-known/") => {
                let mut card = card(false);
                card["capabilities"]["streaming"] = json!(declares);
                answer(200, &card)
            }
            "SendMessage" => result(json!({"task": task(COMPLETED, "done")})),
            _ => events(std::slice::from_ref(&refusal)),
        }
    })
    .await
}

#[tokio::test]
async fn an_agent_that_refuses_streams_within_one_is_sent_the_message_once() {
    for (code, declares) in [(-32004, None), (-32601, None), (-32601, Some(true))] {
        let peer = refuses_within(code, declares).await;
        let client = client(peer.url(), |_| {});
        let followed = client.stream(&CallContext::default(), say("hello")).await.unwrap();
        assert_eq!(response_text(&followed.finish().await.unwrap()), "done");
        assert_eq!(peer.story(), ["SendStreamingMessage", "SendMessage"], "{code} {declares:?}");
    }
    // An agent that has streams means something else by it, and may be at work.
    let peer = refuses_within(-32004, Some(true)).await;
    let client = client(peer.url(), |_| {});
    let refused = match client.stream(&CallContext::default(), say("hello")).await {
        Ok(followed) => followed.finish().await.map(drop),
        Err(error) => Err(error),
    };
    assert_eq!(refused.unwrap_err().error_kind(), Some(switchboard_a2a::ErrorKind::UnsupportedOperation));
    assert_eq!(peer.story(), ["SendStreamingMessage"]);
}

#[tokio::test]
async fn an_agent_without_a_place_for_streams_is_sent_the_message_once() {
    for status in [404, 405, 501] {
        let peer = agent(false, move |asked, _| match asked.line().as_str() {
            "POST /rest/message:send" => answer(200, &json!({"task": task(COMPLETED, "done")})),
            _ => says(status, "content-type: text/plain", "no such place"),
        })
        .await;
        let client = client(peer.url(), |peer| {
            (peer.binding, peer.version) = (Some(Binding::Rest), Some(Version::V1));
        });
        let followed = client.stream(&CallContext::default(), say("hello")).await.unwrap();
        assert_eq!(response_text(&followed.finish().await.unwrap()), "done");
        assert_eq!(peer.story(), ["POST /rest/message:stream", "POST /rest/message:send"]);
    }
}

#[tokio::test]
async fn an_agent_that_says_in_json_that_it_has_no_place_for_streams_is_sent_the_message_once() {
    for body in [
        json!({ "error": { "code": 404, "status": "NOT_FOUND", "message": "no such path" } }),
        json!({ "code": 404, "message": "Not Found" }),
        json!({ "error": "Not Found" }),
        json!({ "detail": "Not Found" }),
    ] {
        let refusal = body.clone();
        let peer = agent(false, move |asked, _| match asked.line().as_str() {
            "POST /rest/message:send" => answer(200, &json!({"task": task(COMPLETED, "done")})),
            _ => answer(404, &refusal),
        })
        .await;
        let client = client(peer.url(), |peer| {
            (peer.binding, peer.version) = (Some(Binding::Rest), Some(Version::V1));
        });
        let followed = client.stream(&CallContext::default(), say("hello")).await.unwrap();
        assert_eq!(response_text(&followed.finish().await.unwrap()), "done", "{body}");
        // A message to a task is refused for the task that is not there.
        let mut more = say("more");
        more.message.task_id = Some("gone".into());
        let refused = match client.stream(&CallContext::default(), more).await {
            Ok(followed) => followed.finish().await.map(drop),
            Err(error) => Err(error),
        };
        let story = peer.story();
        assert_eq!(story[..2], ["POST /rest/message:stream", "POST /rest/message:send"], "{body}");
        if body.get("detail").is_none() {
            assert_eq!(refused.unwrap_err().error_kind(), Some(switchboard_a2a::ErrorKind::TaskNotFound), "{body}");
            assert_eq!(story[2..], ["POST /rest/message:stream"], "{body}");
        }
    }
}

#[tokio::test]
async fn where_a_call_comes_from_is_said_with_it() {
    let peer = agent(false, |_, _| result(json!({"task": task(COMPLETED, "done")}))).await;
    let client = client(peer.url(), |peer| {
        peer.headers = vec![("x-team".parse().unwrap(), "blue".parse().unwrap())];
        peer.headers.push(("user-agent".parse().unwrap(), "ours/1".parse().unwrap()));
    });
    let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let context = CallContext {
        correlation_id: Some("request-1".to_owned()),
        parent_id: Some("task-7".to_owned()),
        traceparent: Some(format!("00-{trace}-{span}-01")),
        headers: vec![("x-team".parse().unwrap(), "red".parse().unwrap())],
        ..CallContext::default()
    };
    client.send(&context, say("hello")).await.unwrap();
    client.stream(&context, say("hello")).await.unwrap().finish().await.unwrap();
    let mut marked = say("hello");
    let own = switchboard_a2a::Json::parse(r#"{"traceId":"own"}"#).unwrap();
    marked.metadata.get_or_insert_default().insert("a2a.trace", own);
    client.send(&context, marked).await.unwrap();
    client.send(&CallContext::default(), say("hello")).await.unwrap();
    let traces: Vec<_> =
        peer.asked().iter().map(|asked| asked.json()["params"]["metadata"]["a2a.trace"].clone()).collect();
    let ours = json!({"traceId": trace, "spanId": span});
    assert_eq!(traces, [ours.clone(), ours, json!({"traceId": "own"}), serde_json::Value::Null]);
    for asked in &peer.asked()[..3] {
        let headers =
            ["x-correlation-id", "x-parent-id", "x-team", "user-agent"].map(|name| asked.header(name).unwrap());
        assert_eq!(headers, ["request-1", "task-7", "red", "ours/1"]);
        assert!(asked.header("traceparent").unwrap().contains(trace));
    }
    let last = &peer.asked()[3];
    assert_eq!((last.header("x-correlation-id"), last.header("x-team")), (None, Some("blue")));
    assert!(last.header("idempotency-key").is_some_and(|key| key.len() == 36), "{last:?}");
}
