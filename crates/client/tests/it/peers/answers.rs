//! Answers that are none.

use switchboard_client::{ClientError, Context};

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
    let error = client.send(&Context::default(), say("hello")).await.unwrap_err();
    assert_eq!(what(&error), (200, "a web page (HTML)", "Sign in"));
    let error = client.stream(&Context::default(), say("hello")).await.map(drop).unwrap_err();
    assert_eq!(what(&error), (200, "a web page (HTML)", "Sign in"));
    assert_eq!(peer.asked().len(), 2, "nothing was sent twice");
}

#[tokio::test]
async fn nothing_at_all_is_no_answer() {
    let peer = agent(false, |_, _| says(200, "content-type: application/json", "")).await;
    let client = client(peer.url(), |_| {});
    let error = client.send(&Context::default(), say("hello")).await.unwrap_err();
    assert_eq!(what(&error), (200, "nothing", ""));
    let error = client.get(&Context::default(), &"t".into(), None).await.unwrap_err();
    assert_eq!(what(&error), (200, "nothing", ""));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let peer = agent(false, |_, _| says(302, "location: /elsewhere", "")).await;
    let client = client(peer.url(), |_| {});
    let error = client.send(&Context::default(), say("hello")).await.unwrap_err();
    assert_eq!(what(&error).0, 302);
    assert_eq!(peer.asked().len(), 1);
}

#[tokio::test]
async fn an_answer_may_be_too_large() {
    let peer = agent(false, |_, _| result(task(COMPLETED, &"x".repeat(10_000)))).await;
    let roomy = client(peer.url(), |_| {});
    assert!(roomy.get(&Context::default(), &"t".into(), None).await.is_ok());
    let tight = client(peer.url(), |peer| peer.limits.body = 1_000);
    let error = tight.get(&Context::default(), &"t".into(), None).await.unwrap_err();
    assert!(matches!(error, ClientError::TooLarge { limit: 1_000, .. }), "{error}");
}

#[tokio::test]
async fn silence_is_waited_for_only_so_long() {
    let peer = agent(false, |_, _| super::script::Reply::Stalls(Vec::new())).await;
    let client = client(peer.url(), |peer| {
        peer.limits.head = std::time::Duration::from_millis(30);
        peer.limits.answer = std::time::Duration::from_millis(30);
    });
    let error = client.send(&Context::default(), say("hello")).await.unwrap_err();
    assert!(matches!(error, ClientError::Timeout { .. }), "{error}");
    assert_eq!(peer.asked().len(), 1, "it may be at work on it");
}
