//! Who we are to a peer: tokens that are fetched, and fetched again, signatures, and secrets that are shown nowhere.

use ring::hmac;
use serde_json::json;
use switchboard_client::{Binding, CallContext, ClientCredentials, ClientError, Credentials, Secret};

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
        client.get(&CallContext::default(), &"t".into(), None).await.unwrap();
    }
    assert_eq!(peer.story(), ["POST /token", "GetTask", "GetTask", "GetTask"]);
    assert!(peer.asked()[0].header("authorization").unwrap().starts_with("Basic "));
    assert!(peer.cards().iter().all(|asked| asked.header("authorization").is_none()));
}

#[tokio::test]
async fn a_token_that_is_refused_is_fetched_again() {
    let peer = peer(|token| token != "token-0").await;
    let client = with_oauth(&peer);
    client.get(&CallContext::default(), &"t".into(), None).await.unwrap();
    client.get(&CallContext::default(), &"t".into(), None).await.unwrap();
    assert_eq!(peer.story(), ["POST /token", "GetTask", "POST /token", "GetTask", "GetTask"]);
}

#[tokio::test]
async fn a_token_that_is_never_taken_is_fetched_only_twice() {
    let peer = peer(|_| false).await;
    let error = with_oauth(&peer).get(&CallContext::default(), &"t".into(), None).await.unwrap_err();
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
    let error = with_oauth(&peer).get(&CallContext::default(), &"t".into(), None).await.unwrap_err();
    assert!(matches!(error, ClientError::Credentials { status: 401, .. }), "{error}");
    assert!(error.to_string().contains("invalid_client: who?"), "{error}");
    assert!(!error.to_string().contains("very secret"));
}

#[tokio::test]
async fn a_token_is_not_used_for_another_client_or_other_scopes() {
    let peer = peer(|_| true).await;
    let client = client(peer.url(), |_| {});
    let ours = ClientCredentials::new(format!("{}/token", peer.url()), "us", Secret::Plain("very secret".to_owned()));
    let (mut theirs, mut wider) = (ours.clone(), ours.clone());
    theirs.client_id = "them".to_owned();
    wider.scopes = vec!["all".to_owned()];
    for (oauth, expected) in [(&ours, "token-0"), (&theirs, "token-1"), (&theirs, "token-1"), (&wider, "token-2")] {
        let context = CallContext { credentials: Some(Credentials::OAuth(oauth.clone())), ..CallContext::default() };
        client.get(&context, &"t".into(), None).await.unwrap();
        let asked = peer.asked();
        let shown = asked.last().and_then(|asked| asked.header("authorization"));
        assert_eq!(shown, Some(format!("Bearer {expected}").as_str()), "{oauth:?}");
    }
}

#[tokio::test]
async fn a_secret_is_told_no_token_server_without_encryption() {
    let peer = peer(|_| true).await;
    let secret = Secret::Plain("very secret".to_owned());
    let oauth = ClientCredentials::new("http://login.invalid/token", "us", secret);
    let client = client(peer.url(), |peer| peer.credentials = Credentials::OAuth(oauth));
    let error = client.get(&CallContext::default(), &"t".into(), None).await.unwrap_err();
    assert!(matches!(&error, ClientError::Invalid { field: "tokenUrl", .. }), "{error}");
    assert!(error.to_string().contains("should begin with https"), "{error}");
}

#[tokio::test]
async fn a_time_to_live_may_be_written_as_text() {
    let peer = Peer::start(|asked, before| match asked.line().as_str() {
        line if line.contains("/.well-known/") => answer(200, &card(false)),
        "POST /token" => answer(200, &json!({"access_token": format!("token-{before}"), "expires_in": "20"})),
        _ => result(task(COMPLETED, "")),
    })
    .await;
    let client = with_oauth(&peer);
    for _ in 0..2 {
        client.get(&CallContext::default(), &"t".into(), None).await.unwrap();
    }
    assert_eq!(peer.story(), ["POST /token", "GetTask", "POST /token", "GetTask"], "it is nearly over when it comes");
}

#[tokio::test]
async fn a_token_server_that_hangs_is_part_of_the_time_for_an_answer() {
    let peer = Peer::start(|asked, _| match asked.line().as_str() {
        line if line.contains("/.well-known/") => answer(200, &card(false)),
        _ => Reply::Stalls(Vec::new()),
    })
    .await;
    let secret = Secret::Plain("very secret".to_owned());
    let oauth = ClientCredentials::new(format!("{}/token", peer.url()), "us", secret);
    let client = client(peer.url(), |peer| {
        peer.credentials = Credentials::OAuth(oauth);
        peer.limits.head = std::time::Duration::from_millis(200);
    });
    let (context, id) = (CallContext::default(), "t".into());
    let both = async { tokio::join!(client.get(&context, &id, None), client.get(&context, &id, None)) };
    let (one, other) = tokio::time::timeout(crate::HANG_GUARD, both).await.unwrap();
    for error in [one.unwrap_err(), other.unwrap_err()] {
        assert!(matches!(error, ClientError::Timeout { .. }), "{error}");
    }
}

/// Whether a request is signed with a secret, as the receiver checks it.
fn is_signed(asked: &Asked, secret: &str) -> bool {
    let Some((time, signature)) = asked.header("x-hub").and_then(|value| value.split_once(",v1=")) else {
        return false;
    };
    let time = time.strip_prefix("t=").unwrap();
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()));
    context.update(format!("{time}.{}.", asked.line().replace(' ', ".")).as_bytes());
    context.update(asked.body());
    let expected: String = context.sign().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
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
    client.send(&CallContext::default(), say("hello")).await.unwrap();
    client.get(&CallContext::default(), &"t".into(), Some(3)).await.unwrap();
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
    let error = client.get(&CallContext::default(), &"t".into(), None).await.unwrap_err();
    assert!(matches!(&error, ClientError::Secret(why) if why.contains("SWITCHBOARD_TEST_NOT_SET")), "{error}");
    // Cargo sets this one for every test.
    let name = Secret::Environment("CARGO_PKG_NAME".to_owned());
    let context = CallContext { credentials: Some(Credentials::Bearer(name)), ..CallContext::default() };
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
        let context = CallContext { credentials: Some(credentials), ..CallContext::default() };
        let printed = format!("{peer:?} {context:?}");
        assert!(!printed.contains("hunter2") && printed.contains("agent.example"), "{printed}");
    }
}
