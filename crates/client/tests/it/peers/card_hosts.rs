//! Cards that lead to another host: whether they are followed, and what goes along.

use std::time::Duration;

use serde_json::json;
use switchboard_client::{CallContext, Client, ClientError, Credentials, Peer as Called, Secret};
use switchboard_egress::{Egress, Options};
use tokio::net::TcpListener;

use super::script::{COMPLETED, Peer, card, json as answer, result, task};
use crate::world::{client, quick, say};

/// An agent, and the host that its card leads to.
async fn agent() -> (Peer, Peer) {
    let done = || result(json!({"task": task(COMPLETED, "done")}));
    let there = Peer::start(move |_, _| done()).await;
    let url = format!("{}/far", there.url());
    let here = Peer::start(move |asked, _| match asked.line().contains("/.well-known/") {
        true => {
            let mut card = card(false);
            card["supportedInterfaces"] = json!([{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
            answer(200, &card)
        }
        false => done(),
    })
    .await;
    (here, there)
}

fn bearer() -> Credentials {
    Credentials::Bearer(Secret::Plain("sesame".to_owned()))
}

/// Static ones of the agent, and those of one call.
fn both_ways() -> [(Credentials, CallContext); 2] {
    let per_call = CallContext { credentials: Some(bearer()), ..CallContext::default() };
    [(bearer(), CallContext::default()), (Credentials::None, per_call)]
}

#[tokio::test]
async fn credentials_stay_at_the_host_that_was_named() {
    for (credentials, context) in both_ways() {
        let (here, there) = agent().await;
        let client = client(here.url(), |peer| peer.credentials = credentials);
        client.send(&context, say("hello")).await.unwrap();
        let asked = &here.asked()[0];
        assert_eq!((asked.line().as_str(), asked.header("authorization")), ("POST /far", Some("Bearer sesame")));
        assert!(there.asked().is_empty() && there.cards().is_empty());
    }
}

#[tokio::test]
async fn a_trusted_card_is_followed_with_what_is_for_the_agent() {
    for (credentials, context) in both_ways() {
        let (here, there) = agent().await;
        let client = client(here.url(), |peer| (peer.credentials, peer.trust_card_url) = (credentials, true));
        client.send(&context, say("hello")).await.unwrap();
        let asked = &there.asked()[0];
        assert_eq!((asked.line().as_str(), asked.header("authorization")), ("POST /far", Some("Bearer sesame")));
        assert!(here.asked().is_empty());
    }
}

fn named_client(here: &Peer, there: &Peer) -> Client {
    client(here.url(), |peer| {
        (peer.credentials, peer.pins_credentials) = (bearer(), true);
        peer.endpoint = Some(format!("{}/named", there.url()));
    })
}

#[tokio::test]
async fn pinned_credentials_go_nowhere_else_however_trusted() {
    for (credentials, context) in both_ways() {
        let (here, there) = agent().await;
        let client = client(here.url(), |peer| {
            (peer.credentials, peer.trust_card_url, peer.pins_credentials) = (credentials, true, true);
        });
        let error = client.send(&context, say("hello")).await.unwrap_err();
        assert!(matches!(&error, ClientError::Secret(why) if why.contains(&there.url())), "{error}");
        assert!(!error.to_string().contains("sesame"), "{error}");
        assert!(here.asked().is_empty() && there.asked().is_empty());
    }
    let (here, there) = agent().await;
    let client = client(here.url(), |peer| (peer.trust_card_url, peer.pins_credentials) = (true, true));
    client.send(&CallContext::default(), say("hello")).await.unwrap();
    assert_eq!(there.asked().len(), 1, "without credentials there is nothing to pin");
    let named = named_client(&here, &there);
    named.send(&CallContext::default(), say("hello")).await.unwrap();
    assert_eq!(there.asked()[1].header("authorization"), Some("Bearer sesame"), "what was named is meant");
}

#[tokio::test]
async fn a_host_that_never_shakes_hands_is_given_up_in_the_time_for_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut called = Called::new(format!("https://{}", listener.local_addr().unwrap()));
    called.retries = quick(0);
    // No other limit ends it before the guard does.
    called.limits.head = Duration::from_secs(3_600);
    let options = Options { anywhere: true, connect_timeout: Duration::from_millis(100), ..Options::default() };
    let client = Client::new(Egress::new(options).unwrap(), called).unwrap();
    let context = CallContext::default();
    let asked = client.card(&context);
    let error = tokio::time::timeout(crate::HANG_GUARD, asked).await.unwrap().unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
}
