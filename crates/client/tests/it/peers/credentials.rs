//! Who we are to a peer: tokens that are fetched, and fetched again, signatures, and secrets that nobody gets to see.

use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;
use switchboard_client::{Binding, ClientCredentials, ClientError, Context, Credentials, Secret};

use super::script::{Asked, COMPLETED, Peer, Reply, card, json as answer, result, says, task};
use crate::world::{client, say};

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

/// Whether a request is signed with a secret, as whoever has that secret finds out.
fn is_signed(asked: &Asked, secret: &str) -> bool {
    let Some((time, signature)) = asked.header("x-hub").and_then(|value| value.split_once(",v1=")) else {
        return false;
    };
    let time = time.strip_prefix("t=").unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{time}.{}.", asked.line().replace(' ', ".")).as_bytes());
    mac.update(asked.body());
    let expected: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    signature == expected
}

#[tokio::test]
async fn every_request_is_signed() {
    let peer = Peer::start(|asked, before| match (asked.line().contains("/.well-known/"), before) {
        (true, _) => answer(200, &card(true)),
        (false, 0) => Reply::Closes,
        (false, _) if asked.line().starts_with("GET") => answer(200, &task(COMPLETED, "")),
        (false, _) => answer(200, &json!({"task": task(COMPLETED, "")})),
    })
    .await;
    let client = client(peer.url(), |peer| {
        let secret = Secret::Plain("very secret".to_owned());
        peer.credentials = Credentials::Signature { header: "x-hub".parse().unwrap(), secret };
        peer.binding = Some(Binding::Rest);
    });
    client.send(&Context::default(), say("hello")).await.unwrap();
    client.get(&Context::default(), &"t".into(), Some(3)).await.unwrap();
    assert_eq!(peer.asked().len(), 4, "each was asked twice");
    for asked in peer.asked().iter().chain(&peer.cards()) {
        assert!(is_signed(asked, "very secret") && !is_signed(asked, "another"), "{asked:?}");
    }
}

#[tokio::test]
async fn a_secret_is_read_from_the_environment_when_it_is_needed() {
    let peer = peer(|_| true).await;
    let missing = Secret::Environment("SWITCHBOARD_TEST_NOT_SET".to_owned());
    let client = client(peer.url(), |peer| peer.credentials = Credentials::Bearer(missing));
    let error = client.get(&Context::default(), &"t".into(), None).await.unwrap_err();
    assert!(matches!(&error, ClientError::Secret(why) if why.contains("SWITCHBOARD_TEST_NOT_SET")), "{error}");
    // Cargo sets this one for every test.
    let name = Secret::Environment("CARGO_PKG_NAME".to_owned());
    let context = Context { credentials: Some(Credentials::Bearer(name)), ..Context::default() };
    client.get(&context, &"t".into(), None).await.unwrap();
    assert_eq!(peer.asked()[0].header("authorization"), Some("Bearer switchboard-client"));
}

#[test]
fn no_secret_is_ever_printed() {
    let secret = || Secret::Plain("hunter2".to_owned());
    let all = [
        Credentials::Bearer(secret()),
        Credentials::ApiKey { header: "x-api-key".parse().unwrap(), key: secret() },
        Credentials::ApiKeyInQuery { name: "key".to_owned(), key: secret() },
        Credentials::Basic { user: "me".to_owned(), password: secret() },
        Credentials::Signature { header: "x-hub".parse().unwrap(), secret: secret() },
        Credentials::OAuth(ClientCredentials::new("https://login.example", "us", secret())),
    ];
    for credentials in all {
        let mut peer = switchboard_client::Peer::new("https://agent.example");
        let mut value = http::HeaderValue::from_static("hunter2");
        value.set_sensitive(true);
        (peer.credentials, peer.headers) = (credentials.clone(), vec![("x-team".parse().unwrap(), value)]);
        let context = Context { credentials: Some(credentials), ..Context::default() };
        let printed = format!("{peer:?} {context:?}");
        assert!(!printed.contains("hunter2") && printed.contains("agent.example"), "{printed}");
    }
}
