//! What is told while calls are made holds no secrets, wherever a caller has written one.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use switchboard_client::{CallContext, Client, Peer, egress};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

use super::script::{COMPLETED, agent, event, events, json, result, task};
use crate::world::{client, say};

/// Hears everything.
#[derive(Clone, Default)]
struct Listener {
    heard: Arc<Mutex<String>>,
}

impl Visit for Listener {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        writeln!(self.heard.lock().unwrap(), "{field}={value:?}").unwrap();
    }
}

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Listener {
    /// Hears what this thread tells from now on. Another thread that has reached a message first, while nobody listened, may
    /// have left the note that nobody does: so all of them are reached once before the notes are made anew.
    async fn begin(&self) -> DefaultGuard {
        let guard = tracing::subscriber::set_default(self.clone());
        let peer = agent(false, |_, _| events(&[event(serde_json::json!({"task": task(COMPLETED, "done")}))])).await;
        let caller = client(peer.url(), |_| {});
        caller.stream(&CallContext::default(), say("hello")).await.unwrap().finish().await.unwrap();
        let peer = agent(false, |_, _| result(serde_json::json!({"task": task(COMPLETED, "done")}))).await;
        client(peer.url(), |_| {}).send(&CallContext::default(), say("hello")).await.unwrap();
        tracing::callsite::rebuild_interest_cache();
        self.heard.lock().unwrap().clear();
        guard
    }
}

#[tokio::test]
async fn a_key_in_an_address_is_not_told() {
    let listener = Listener::default();
    let _guard = listener.begin().await;
    let peer = agent(false, |_, _| result(serde_json::json!({"task": task(COMPLETED, "done")}))).await;
    let endpoint = format!("{}/rpc?token=verysecret", peer.url());
    let caller = client(peer.url(), |peer| peer.endpoint = Some(endpoint));
    caller.send(&CallContext::default(), say("hello")).await.unwrap();
    assert!(peer.asked()[0].line().ends_with("?token=verysecret"), "it is sent");
    let heard = listener.heard.lock().unwrap().clone();
    assert!(heard.contains("this interface is used") && heard.contains("/rpc?…"), "{heard}");
    assert!(!heard.contains("verysecret"), "{heard}");
}

#[tokio::test]
async fn a_long_body_is_cut_at_a_character() {
    let listener = Listener::default();
    let _guard = listener.begin().await;
    let peer = agent(false, |_, _| result(serde_json::json!({"task": task(COMPLETED, "done")}))).await;
    let caller = client(peer.url(), |_| {});
    for text in ["ä".repeat(20_000), format!("x{}", "ä".repeat(20_000))] {
        caller.send(&CallContext::default(), say(&text)).await.unwrap();
    }
    let heard = listener.heard.lock().unwrap().clone();
    assert_eq!(heard.matches("ä… and ").count(), 2, "{heard}");
}

#[tokio::test]
async fn an_error_does_not_repeat_the_secrets_of_an_address() {
    let peer = super::script::Peer::start(|_, _| json(404, &serde_json::json!({}))).await;
    let caller = client(format!("{}/card.json?token=verysecret", peer.url()), |_| {});
    let error = caller.card(&CallContext::default()).await.unwrap_err().to_string();
    assert!(error.contains("/card.json?…") && !error.contains("verysecret"), "{error}");
    let refused = Client::new(egress().unwrap(), Peer::new("http://me:verysecret@127.0.0.1/")).map(drop);
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("http://***@127.0.0.1/") && !error.contains("verysecret"), "{error}");
}

#[tokio::test]
async fn a_secret_in_an_event_is_not_told() {
    let listener = Listener::default();
    let _guard = listener.begin().await;
    let peer = agent(false, |_, _| {
        let mut task = task(COMPLETED, "done");
        let secrets = serde_json::json!([{"token": "verysecret", "url": "u"}, {"token": 7}]);
        task["metadata"] = serde_json::json!({"access_token": "verysecret", "a": secrets, "text": "token"});
        events(&[event(serde_json::json!({"task": task}))])
    })
    .await;
    let followed = client(peer.url(), |_| {}).stream(&CallContext::default(), say("hello")).await.unwrap();
    followed.finish().await.unwrap();
    let heard = listener.heard.lock().unwrap().clone();
    for shown in
        ["\"access_token\":\"***\"", "{\"token\":\"***\",\"url\":\"u\"}", "\"token\":7", "\"text\":\"token\"", "done"]
    {
        assert!(heard.contains(shown), "{shown} in {heard}");
    }
    assert!(!heard.contains("verysecret"), "{heard}");
}
