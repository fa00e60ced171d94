//! Answers that are none.

use serde_json::json;
use switchboard_a2a::{ErrorKind, Version};
use switchboard_client::{Binding, CallContext, ClientError};

use super::script::{COMPLETED, agent, result, says, task};
use crate::world::{BINDINGS, client, say};

fn what(error: &ClientError) -> (u16, &str, &str) {
    match error {
        ClientError::NotA2a { status, what, hint, .. } => (*status, what, hint),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_web_page_is_told_by_its_title() {
    let page = "<!doctype html><html><head><title>Sign in</title></head></html>";
    let peer = agent(false, move |_, _| says(200, "content-type: text/html", page)).await;
    let client = client(peer.url(), |_| {});
    let error = client.send(&CallContext::default(), say("hello")).await.unwrap_err();
    assert_eq!(what(&error), (200, "a web page (HTML)", "Sign in"));
    let error = client.stream(&CallContext::default(), say("hello")).await.map(drop).unwrap_err();
    assert_eq!(what(&error), (200, "a web page (HTML)", "Sign in"));
    assert_eq!(peer.asked().len(), 2, "nothing was sent twice");
}

#[tokio::test]
async fn what_is_no_a2a_is_told_by_what_it_is_and_its_first_words() {
    let deep = "[".repeat(1_000);
    let long = "ä".repeat(1_000);
    let cut = "ä".repeat(100) + "…";
    for (media_type, body, expected, words) in [
        ("text/html; charset=utf-8", "<html><head><title>Sign\n in</title>", "a web page (HTML)", "Sign in"),
        ("", "<!DOCTYPE html><p>Bad <b>gateway</b>", "a web page (HTML)", "Bad gateway"),
        ("", "what", "something without a type", "what"),
        ("text/plain", "no\u{1b}[31m healthy upstream", "text/plain", "no [31m healthy upstream"),
        ("text/plain", &long, "text/plain", &cut),
        ("application/json", r#"{"ok":true}"#, "JSON that is no answer to this", r#"{"ok":true}"#),
        ("application/json", "{", "JSON that cannot be read (EOF while parsing an object at line 1 column 1)", "{"),
        ("application/json", &deep, "JSON nested deeper than 67 levels, the most that is read", &deep[..200]),
    ] {
        let header = if media_type.is_empty() { "x-none: x".to_owned() } else { format!("content-type: {media_type}") };
        let said = body.to_owned();
        let peer = agent(false, move |_, _| says(200, &header, &said)).await;
        let error = client(peer.url(), |_| {}).send(&CallContext::default(), say("hello")).await.unwrap_err();
        let (status, found, hint) = what(&error);
        assert_eq!((status, found, hint.trim_end_matches('…')), (200, expected, words.trim_end_matches('…')));
        let origin = peer.url();
        assert_eq!(error.to_string(), format!("{origin} answered 200 with {expected}, not with A2A: {hint:?}"));
    }
    let head = b"HTTP/1.1 200 So\r\nconnection: close\r\ncontent-type: application/json\r\n\r\n{\"a\":\"\xff\"}";
    let peer = agent(false, move |_, _| super::script::Reply::Says(head.to_vec())).await;
    let error = client(peer.url(), |_| {}).send(&CallContext::default(), say("hello")).await.unwrap_err();
    assert_eq!(what(&error).1, "JSON with bytes that are no UTF-8");
}

#[tokio::test]
async fn a_status_says_what_a_message_alone_does_not() {
    for (status, code, kind) in [
        (404, -32603, ErrorKind::TaskNotFound),
        (409, -32603, ErrorKind::TaskNotCancelable),
        (500, -32603, ErrorKind::Internal),
        // A kind that the agent has sent is kept.
        (404, -32003, ErrorKind::PushNotSupported),
    ] {
        let peer = agent(false, move |_, _| super::script::json(status, &json!({"code": code, "message": "no"}))).await;
        let client = client(peer.url(), |peer| {
            (peer.binding, peer.version) = (Some(Binding::Rest), Some(Version::V1));
        });
        let error = client.get(&CallContext::default(), &"t".into(), None).await.unwrap_err();
        assert_eq!(error.error_kind(), Some(kind), "{status} {code}: {error}");
        assert_eq!(error.status(), Some(status), "{code}: {error}");
    }
}

#[tokio::test]
async fn an_error_without_a_code_counts_by_its_status() {
    for binding in BINDINGS {
        for body in [json!({"message": "x"}), json!({"error": "x"})] {
            // Transient, surely without effect, a breakdown; and how often a message without a key is sent.
            for (status, expected, times) in [
                (404, (false, false, false), 1),
                (429, (true, true, false), 5),
                (500, (false, false, true), 1),
                (502, (true, false, true), 1),
                (503, (true, false, true), 1),
            ] {
                let said = body.clone();
                let peer = agent(false, move |_, _| super::script::json(status, &said)).await;
                let client = client(peer.url(), |peer| {
                    (peer.binding, peer.version) = (Some(binding), Some(Version::V1));
                });
                let error = client.send(&CallContext::default(), say("hello")).await.unwrap_err();
                let found = (error.is_transient(), error.is_without_effect(), error.is_breakdown());
                assert_eq!(found, expected, "{binding:?} {status} {body}: {error}");
                assert_eq!(peer.asked().len(), times, "{binding:?} {status} {body}");
            }
        }
    }
}

#[tokio::test]
async fn nothing_at_all_is_no_answer() {
    let peer = agent(false, |_, _| says(200, "content-type: application/json", "")).await;
    let client = client(peer.url(), |_| {});
    let error = client.send(&CallContext::default(), say("hello")).await.unwrap_err();
    assert_eq!(what(&error), (200, "nothing", ""));
    let error = client.get(&CallContext::default(), &"t".into(), None).await.unwrap_err();
    assert_eq!(what(&error), (200, "nothing", ""));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let peer = agent(false, |_, _| says(302, "location: /elsewhere?token=secret", "")).await;
    let client = client(peer.url(), |_| {});
    let error = client.send(&CallContext::default(), say("hello")).await.unwrap_err();
    assert_eq!(what(&error), (302, format!("a redirect to {}/elsewhere?…", peer.url()).as_str(), ""));
    assert_eq!(peer.asked().len(), 1);
}

#[tokio::test]
async fn an_answer_may_be_too_large() {
    let peer = agent(false, |_, _| result(task(COMPLETED, &"x".repeat(10_000)))).await;
    let roomy = client(peer.url(), |_| {});
    assert!(roomy.get(&CallContext::default(), &"t".into(), None).await.is_ok());
    let tight = client(peer.url(), |peer| peer.limits.body = 1_000);
    let error = tight.get(&CallContext::default(), &"t".into(), None).await.unwrap_err();
    assert!(matches!(error, ClientError::TooLarge { limit: 1_000, .. }), "{error}");
}

#[tokio::test]
async fn silence_is_waited_for_only_so_long() {
    let peer = agent(false, |_, _| super::script::Reply::Stalls(Vec::new())).await;
    let client = client(peer.url(), |_| {});
    let context = CallContext::default();
    let sending = client.send(&context, say("hello"));
    // Time passes only once the agent has the message.
    let time = async {
        while peer.asked().is_empty() {
            tokio::task::yield_now().await;
        }
        tokio::time::pause();
        tokio::time::advance(std::time::Duration::from_secs(24 * 60 * 60)).await;
    };
    let (error, ()) = tokio::join!(sending, time);
    let error = error.unwrap_err();
    assert!(matches!(error, ClientError::Timeout { .. }), "{error}");
    assert_eq!(peer.asked().len(), 1, "it may be working on it");
}

#[tokio::test]
async fn an_answer_to_another_question_is_none() {
    let answer = |id: &str, rest: &str| format!("{{\"jsonrpc\":\"2.0\"{id},{rest}}}");
    let done = format!("\"result\":{}", task(COMPLETED, ""));
    let refused = "\"error\":{\"code\":-32602,\"message\":\"wrong\"}";
    let cases = [
        (answer(",\"id\":7", &done), "an answer to another question (id 7, not 1)"),
        (answer(",\"id\":\"x\"", &done), "an answer to another question (id \"x\", not 1)"),
        (answer(",\"id\":null", &done), "an answer to another question (id null, not 1)"),
        (answer(",\"id\":7", refused), "an answer to another question (id 7, not 1)"),
        (answer(",\"id\":null", refused), "wrong"),
        (answer(",\"id\":1", &done), ""),
        (answer(",\"id\":\"1\"", &done), ""),
        (answer("", &done), ""),
    ];
    for (body, expected) in cases {
        let said = body.clone();
        let peer = agent(false, move |_, _| says(200, "content-type: application/json", &said)).await;
        match client(peer.url(), |_| {}).get(&CallContext::default(), &"t".into(), None).await {
            Ok(_) => assert_eq!(expected, "", "{body}"),
            Err(ClientError::NotA2a { what, .. }) => assert_eq!(what, expected, "{body}"),
            Err(error) => assert!(!expected.is_empty() && error.to_string().contains(expected), "{error}"),
        }
    }
}

#[tokio::test]
async fn a_refusal_keeps_the_number_that_the_agent_gave_it() {
    for (code, kind) in [(-99_999, ErrorKind::Internal), (-32_001, ErrorKind::TaskNotFound)] {
        let peer = agent(false, move |_, _| super::script::error(code, "no")).await;
        let error = client(peer.url(), |_| {}).get(&CallContext::default(), &"t".into(), None).await.unwrap_err();
        assert_eq!((error.error_kind(), error.code()), (Some(kind), Some(code)));
    }
}
