//! How cards are kept: asked for once for all calls, as long as they are good, and never in the way.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use switchboard_client::{CallContext, ClientError, Credentials, FoundCard, Secret};
use tokio::sync::Notify;

use super::script::{Asked, COMPLETED, Peer, Reply, card, json as answer, result, says, task};
use crate::world::{client, say};

const GOOD_FOR_NOTHING: &str = "content-type: application/json\r\ncache-control: max-age=0";

fn done() -> Reply {
    result(json!({"task": task(COMPLETED, "done")}))
}

fn is_card(asked: &Asked) -> bool {
    asked.line().contains("/.well-known/")
}

/// Time goes by.
async fn later() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(5)).await;
    tokio::time::resume();
}

/// No timer fires while it lives. A clock that is paused goes on to the next timer when all wait, unless a blocking task
/// runs.
struct TimeStandsStill(std::sync::mpsc::Sender<()>);

impl TimeStandsStill {
    fn begin() -> Self {
        let (ends, end) = std::sync::mpsc::channel();
        tokio::task::spawn_blocking(move || end.recv());
        tokio::time::pause();
        Self(ends)
    }
}

impl Drop for TimeStandsStill {
    fn drop(&mut self) {
        // The blocking task ends before time goes on by itself, or with it: nothing hangs on which.
        let _ = self.0.send(());
        tokio::time::resume();
    }
}

/// More time goes by than a response may take to begin, once a card has been asked for.
async fn too_late(peer: &Peer) {
    while peer.cards().is_empty() {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(10 * 60)).await;
}

#[tokio::test]
async fn a_host_that_hangs_is_asked_once_for_all_who_wait() {
    let peer = Peer::start(|_, _| Reply::Stalls(Vec::new())).await;
    let client = client(peer.url(), |_| {});
    let context = CallContext::default();
    let calls = join_all((0..5).map(|_| client.send(&context, say("hello"))));
    let (errors, ()) = tokio::join!(calls, too_late(&peer));
    for error in errors {
        assert!(matches!(error.unwrap_err(), ClientError::Timeout { .. }));
    }
    let error = client.stream(&context, say("hello")).await.map(drop).unwrap_err();
    assert!(matches!(error, ClientError::Timeout { .. }), "{error}");
    assert_eq!(peer.cards().len(), 1);
}

#[tokio::test]
async fn a_failure_does_not_count_for_long() {
    let peer = Peer::start(|asked, before| match is_card(asked) {
        true if before == 0 => Reply::Stalls(Vec::new()),
        true => answer(200, &card(false)),
        false => done(),
    })
    .await;
    let client = client(peer.url(), |_| {});
    let context = CallContext::default();
    let (failed, ()) = tokio::join!(client.send(&context, say("hello")), too_late(&peer));
    failed.unwrap_err();
    tokio::time::resume();
    later().await;
    client.send(&context, say("hello")).await.unwrap();
}

#[tokio::test]
async fn an_agent_without_a_card_is_asked_for_it_once() {
    let peer = Peer::start(|asked, _| match is_card(asked) {
        true => says(404, "content-type: text/plain", "no"),
        false => done(),
    })
    .await;
    let endpoint = format!("{}/rpc", peer.url());
    let client = client(peer.url(), |peer| peer.endpoint = Some(endpoint));
    for _ in 0..3 {
        client.stream(&CallContext::default(), say("hello")).await.unwrap().finish().await.unwrap();
    }
    assert_eq!(peer.cards().len(), 2, "at both places, once");
    assert_eq!(peer.story(), ["SendStreamingMessage"; 3]);
}

#[tokio::test]
async fn a_call_that_asks_about_a_card_keeps_no_other_call_waiting() {
    let asked_again = Arc::new(Notify::new());
    let notify = asked_again.clone();
    let peer = Peer::start(move |asked, before| match is_card(asked) {
        true if before == 0 => says(200, GOOD_FOR_NOTHING, &card(false).to_string()),
        true => {
            notify.notify_one();
            Reply::Stalls(Vec::new())
        }
        false => result(task(COMPLETED, "")),
    })
    .await;
    let client = client(peer.url(), |_| {});
    client.get(&CallContext::default(), &"t".into(), None).await.unwrap();
    later().await;
    let stands_still = TimeStandsStill::begin();
    let slow = client.clone();
    let slow = tokio::spawn(async move { slow.get(&CallContext::default(), &"t".into(), None).await });
    asked_again.notified().await;
    client.get(&CallContext::default(), &"t".into(), None).await.unwrap();
    assert!(!slow.is_finished(), "the other one still waits for the card");
    drop(stands_still);
    // It does not wait for as long as the agent would like it to.
    tokio::time::timeout(Duration::from_secs(600), slow).await.unwrap().unwrap().unwrap();
    assert_eq!(peer.cards().len(), 2);
}

#[tokio::test]
async fn an_agent_that_has_moved_is_called_at_its_new_place() {
    let peer = Peer::start(|asked, before| match is_card(asked) {
        true => {
            let url = if before == 0 { "/old" } else { "/new" };
            let mut card = card(false);
            card["supportedInterfaces"] = json!([{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
            says(200, GOOD_FOR_NOTHING, &card.to_string())
        }
        false => result(task(COMPLETED, "")),
    })
    .await;
    let client = client(peer.url(), |_| {});
    for _ in 0..2 {
        client.get(&CallContext::default(), &"t".into(), None).await.unwrap();
    }
    later().await;
    client.get(&CallContext::default(), &"t".into(), None).await.unwrap();
    let lines: Vec<_> = peer.asked().iter().map(Asked::line).collect();
    assert_eq!(lines, ["POST /old", "POST /old", "POST /new"]);
}

#[tokio::test]
async fn a_pinned_card_is_called_whatever_the_agent_shows_until_another_one_is_pinned() {
    let peer = Peer::start(|asked, before| match is_card(asked) {
        true => {
            let url = if before == 0 { "/old" } else { "/new" };
            let mut card = card(false);
            card["supportedInterfaces"] = json!([{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
            says(200, GOOD_FOR_NOTHING, &card.to_string())
        }
        false => result(task(COMPLETED, "")),
    })
    .await;
    let (client, context) = (client(peer.url(), |_| {}), CallContext::default());
    let within = Duration::from_secs(60);
    let called = async || {
        client.get(&context, &"t".into(), None).await.unwrap();
        peer.asked().last().map(Asked::line)
    };
    let shown = client.probe_card(&context, within).await.unwrap();
    let interface = |found: &FoundCard| found.card.supported_interfaces[0].url.clone();
    assert_eq!(interface(&shown), "/old");
    client.pin_card(Arc::new(shown.card.clone()), shown.json.clone());
    let shown = client.probe_card(&context, within).await.unwrap();
    assert_eq!(interface(&shown), "/new", "a probe finds what the agent shows");
    assert_eq!(called().await.as_deref(), Some("POST /old"));
    assert_eq!(interface(&client.card(&context).await.unwrap()), "/old");
    assert_eq!(interface(&client.refresh_card(&context).await.unwrap()), "/old");
    later().await;
    assert_eq!(called().await.as_deref(), Some("POST /old"), "a stale card is renewed, and not followed");
    client.pin_card(Arc::new(shown.card.clone()), shown.json.clone());
    assert_eq!(called().await.as_deref(), Some("POST /new"));
}

#[tokio::test]
async fn a_card_that_comes_late_is_used_once_it_is_there() {
    let peer = Peer::start(|asked, before| match is_card(asked) {
        true if before == 0 => says(404, "content-type: text/plain", "no"),
        true => answer(200, &card(false)),
        false => result(task(COMPLETED, "")),
    })
    .await;
    let client = client(peer.url(), |peer| {
        (peer.binding, peer.version) = (Some(switchboard_client::Binding::JsonRpc), Some(switchboard_a2a::Version::V1));
    });
    client.get(&CallContext::default(), &"t".into(), None).await.unwrap();
    for _ in 0..7 {
        later().await;
    }
    client.get(&CallContext::default(), &"t".into(), None).await.unwrap();
    let lines: Vec<_> = peer.asked().iter().map(Asked::line).collect();
    assert_eq!(lines, ["POST /", "POST /rpc"]);
}

#[tokio::test]
async fn what_an_agent_says_to_one_caller_is_not_shown_to_another() {
    let peer = Peer::start(|asked, _| {
        let mut card = card(false);
        card["name"] = json!(asked.header("authorization").unwrap_or("anonymous"));
        answer(200, &card)
    })
    .await;
    let client = client(peer.url(), |_| {});
    let bearer = |token: &str| CallContext {
        credentials: Some(Credentials::Bearer(Secret::Plain(token.to_owned()))),
        ..CallContext::default()
    };
    let header = ("authorization".parse().unwrap(), "Bearer three".parse().unwrap());
    let in_header = CallContext { headers: vec![header], ..CallContext::default() };
    for _ in 0..2 {
        for (context, expected) in [
            (bearer("one"), "Bearer one"),
            (CallContext::default(), "anonymous"),
            (bearer("two"), "Bearer two"),
            (in_header.clone(), "Bearer three"),
        ] {
            assert_eq!(client.card(&context).await.unwrap().card.name, expected);
        }
    }
    assert_eq!(peer.cards().len(), 4, "each is kept");
}

#[tokio::test]
async fn a_card_behind_a_key_in_the_address_is_found() {
    let peer = Peer::start(|asked, _| match asked.line().ends_with("?key=sesame") {
        true if is_card(asked) => answer(200, &card(false)),
        true => done(),
        false => says(401, "content-type: text/plain", "no"),
    })
    .await;
    let key = Secret::Plain("sesame".to_owned());
    let client = client(peer.url(), |peer| {
        peer.credentials = Credentials::ApiKeyInQuery { name: "key".to_owned(), key };
    });
    client.send(&CallContext::default(), say("hello")).await.unwrap();
    let found = client.card(&CallContext::default()).await.unwrap();
    assert!(!found.url.contains("sesame"), "{}", found.url);
}
