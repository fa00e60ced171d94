//! What is asked again, and what must not be.

use std::time::{Duration, Instant};

use serde_json::json;
use switchboard_client::{CallContext, ClientError};

use super::script::{COMPLETED, Reply, agent, error, result, says, task};
use crate::world::{client, say};

fn done() -> Reply {
    result(json!({"task": task(COMPLETED, "done")}))
}

#[tokio::test]
async fn a_busy_agent_is_asked_again_when_it_says() {
    let peer = agent(false, |_, before| match before {
        0 => says(503, "content-type: text/plain\r\nretry-after: 1", "busy"),
        _ => result(task(COMPLETED, "")),
    })
    .await;
    let client = client(peer.url(), |peer| peer.retries.max_backoff = Duration::from_secs(1));
    let began = Instant::now();
    client.get(&CallContext::default(), &"t".into(), None).await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(peer.asked().len(), 2);
}

#[tokio::test]
async fn a_message_that_was_one_too_many_is_sent_again() {
    let peer = agent(false, |_, before| match before {
        0 => says(429, "content-type: text/plain\r\nretry-after: 1", "slow down"),
        _ => done(),
    })
    .await;
    let client = client(peer.url(), |peer| peer.retries.max_backoff = Duration::from_secs(1));
    let began = Instant::now();
    client.send(&CallContext::default(), say("hello")).await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(peer.story(), ["SendMessage", "SendMessage"]);
}

#[tokio::test]
async fn an_agent_that_asks_for_too_long_a_wait_is_not_waited_for() {
    let peer = agent(false, |_, _| says(503, "content-type: text/plain\r\nretry-after: 3600", "busy")).await;
    let client = client(peer.url(), |_| {});
    let error = client.get(&CallContext::default(), &"t".into(), None).await.unwrap_err();
    assert!(matches!(error, ClientError::NotA2a { status: 503, .. }), "{error}");
    assert_eq!(peer.asked().len(), 1);
}

#[tokio::test]
async fn it_is_asked_only_so_often() {
    let peer = agent(false, |_, _| says(502, "content-type: text/plain", "bad gateway")).await;
    let client = client(peer.url(), |_| {});
    let error = client.get(&CallContext::default(), &"t".into(), None).await.unwrap_err();
    assert!(matches!(error, ClientError::NotA2a { status: 502, .. }), "{error}");
    assert_eq!(peer.asked().len(), 5);
}

#[tokio::test]
async fn a_message_that_may_have_arrived_is_not_sent_again() {
    let peer = agent(false, |_, _| Reply::Closes).await;
    let client = client(peer.url(), |_| {});
    let error = client.send(&CallContext::default(), say("hello")).await.unwrap_err();
    assert!(matches!(error, ClientError::Lost { .. }), "{error}");
    let error = client.stream(&CallContext::default(), say("hello")).await.map(drop).unwrap_err();
    assert!(matches!(error, ClientError::Lost { .. }), "{error}");
    assert_eq!(peer.story(), ["SendMessage", "SendStreamingMessage"]);
}

#[tokio::test]
async fn a_message_with_a_key_is_sent_again_under_the_same() {
    let peer = agent(true, |_, before| if before < 2 { Reply::Closes } else { done() }).await;
    let client = client(peer.url(), |_| {});
    client.send(&CallContext::default(), say("hello")).await.unwrap();
    client.send(&CallContext::default(), say("hello")).await.unwrap();
    let keys: Vec<_> = peer.asked().iter().map(|asked| asked.header("idempotency-key").unwrap().to_owned()).collect();
    assert_eq!(keys.len(), 4);
    assert!(keys[0] == keys[1] && keys[1] == keys[2], "{keys:?}");
    assert_ne!(keys[2], keys[3], "another message has another key");
}

#[tokio::test]
async fn a_refusal_is_not_asked_about_again() {
    let peer = agent(true, |_, _| error(-32602, "wrong")).await;
    let client = client(peer.url(), |_| {});
    let refused = client.send(&CallContext::default(), say("hello")).await.unwrap_err();
    assert_eq!(refused.error_kind(), Some(switchboard_a2a::ErrorKind::InvalidParams));
    assert_eq!(peer.asked().len(), 1);
}
