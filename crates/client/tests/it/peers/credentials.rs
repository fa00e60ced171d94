//! Tokens that are fetched, and fetched again.

use serde_json::json;
use switchboard_client::{ClientCredentials, ClientError, Context, Credentials, Secret};

use super::script::{COMPLETED, Peer, Reply, card, json as answer, result, says, task};
use crate::world::client;

/// Gives token after token and takes only some of them.
async fn peer(takes: impl Fn(&str) -> bool + Send + Sync + 'static) -> Peer {
    Peer::start(move |asked, before| -> Reply {
        if asked.line().contains("/.well-known/") {
            return answer(200, &card(false));
        }
        if asked.line() == "POST /token" {
            return answer(200, &json!({"access_token": format!("token-{before}"), "expires_in": 3600}));
        }
        match asked.header("authorization").and_then(|header| header.strip_prefix("Bearer ")) {
            Some(token) if takes(token) => result(task(COMPLETED, "")),
            _ => says(401, "www-authenticate: Bearer realm=\"agents\"", ""),
        }
    })
    .await
}

fn with_oauth(peer: &Peer) -> switchboard_client::Client {
    let secret = Secret::Plain("very secret".to_owned());
    let oauth = ClientCredentials::new(format!("{}/token", peer.url()), "us", secret);
    client(peer.url(), |peer| peer.credentials = Credentials::OAuth(oauth))
}

#[tokio::test]
async fn a_token_is_fetched_once() {
    let peer = peer(|token| token == "token-0").await;
    let client = with_oauth(&peer);
    for _ in 0..3 {
        client.get(&Context::default(), &"t".into(), None).await.unwrap();
    }
    assert_eq!(peer.story(), ["POST /token", "GetTask", "GetTask", "GetTask"]);
    assert!(peer.asked()[0].header("authorization").unwrap().starts_with("Basic "));
    assert!(peer.cards().iter().all(|asked| asked.header("authorization").is_none()));
}

#[tokio::test]
async fn a_token_that_is_refused_is_fetched_again() {
    let peer = peer(|token| token != "token-0").await;
    let client = with_oauth(&peer);
    client.get(&Context::default(), &"t".into(), None).await.unwrap();
    client.get(&Context::default(), &"t".into(), None).await.unwrap();
    assert_eq!(peer.story(), ["POST /token", "GetTask", "POST /token", "GetTask", "GetTask"]);
}

#[tokio::test]
async fn a_token_that_is_never_taken_is_fetched_only_twice() {
    let peer = peer(|_| false).await;
    let error = with_oauth(&peer).get(&Context::default(), &"t".into(), None).await.unwrap_err();
    let ClientError::Credentials { status: 401, problem, .. } = &error else { panic!("{error}") };
    assert!(problem.contains("Bearer"), "{problem}");
    assert_eq!(peer.story(), ["POST /token", "GetTask", "POST /token", "GetTask"]);
}

#[tokio::test]
async fn a_token_server_that_refuses_is_told_without_the_secret() {
    let peer = Peer::start(|asked, _| match asked.line().contains("/.well-known/") {
        true => answer(200, &card(false)),
        false => answer(401, &json!({"error": "invalid_client", "error_description": "who?"})),
    })
    .await;
    let error = with_oauth(&peer).get(&Context::default(), &"t".into(), None).await.unwrap_err();
    assert!(matches!(error, ClientError::Credentials { status: 401, .. }), "{error}");
    assert!(error.to_string().contains("invalid_client: who?"), "{error}");
    assert!(!error.to_string().contains("very secret"));
}
