//! Answers that are none.

use switchboard_a2a::ErrorKind;
use switchboard_client::{CallContext, ClientError};

use super::script::{COMPLETED, agent, result, says, task};
use crate::world::{client, say};

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
    let peer = agent(false, |_, _| says(302, "location: /elsewhere", "")).await;
    let client = client(peer.url(), |_| {});
    let error = client.send(&CallContext::default(), say("hello")).await.unwrap_err();
    assert_eq!(what(&error), (302, format!("a redirect to {}/elsewhere", peer.url()).as_str(), ""));
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
