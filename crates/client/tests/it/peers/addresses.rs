//! Addresses: where a card is looked for, and which url is called for an interface on it.

use bytes::Bytes;
use serde_json::json;
use switchboard_client::{CallContext, Client, ClientError, FoundCard, Peer as Called, egress, redact_url};

use super::script::{Peer, says};
use crate::world::client;

#[tokio::test]
async fn a_card_is_looked_for_below_the_address_and_above_it() {
    let peer = Peer::start(|_, _| says(404, "content-type: text/plain", "no")).await;
    let known = |base: &str| ["agent-card.json", "agent.json"].map(|file| format!("GET {base}/.well-known/{file}"));
    for (typed, bases) in [
        ("", &[""][..]),
        ("/a/", &["/a", ""]),
        ("/a/b/c?k=1", &["/a/b/c", "/a/b", ""]),
        ("/a/.well-known/agent-card.json", &[]),
    ] {
        let before = peer.cards().len();
        let error = client(format!("{}{typed}", peer.url()), |_| {}).card(&CallContext::default()).await.unwrap_err();
        assert!(matches!(error, ClientError::NoCard(_)), "{error}");
        let asked: Vec<String> = peer.cards()[before..].iter().map(|asked| asked.line()).collect();
        let expected: Vec<String> = bases.iter().flat_map(|base| known(base)).collect();
        assert_eq!(asked, if bases.is_empty() { vec![format!("GET {typed}")] } else { expected }, "{typed}");
    }
    client(format!("{}/some/card.json?v=2", peer.url()), |_| {}).card(&CallContext::default()).await.unwrap_err();
    assert_eq!(peer.asked().last().unwrap().line(), "GET /some/card.json?v=2");
}

/// The url that is called for an interface on a card that is given.
async fn called(typed: &str, card_url: &str, trust: bool) -> Result<String, ClientError> {
    let interface = json!({"url": card_url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    let card = Bytes::from(json!({"name": "n", "supportedInterfaces": [interface]}).to_string());
    let called = Called { trust_card_url: trust, ..Called::new(typed) };
    let given = FoundCard::from_json(card, typed.to_owned()).unwrap();
    let client = Client::with_card(egress().unwrap(), called, given)?;
    client.interface(&CallContext::default()).await.map(|interface| interface.url)
}

#[tokio::test]
async fn an_address_on_the_card_stays_on_the_host_that_was_reached() {
    for (typed, card_url, expected) in [
        ("https://proxy.example", "http://10.0.0.1:8080/a2a", "https://proxy.example/a2a"),
        ("https://proxy.example/quinn", "http://localhost:8080/a2a", "https://proxy.example/quinn/a2a"),
        ("https://proxy.example/a2a", "http://localhost:8080/a2a", "https://proxy.example/a2a"),
        ("https://proxy.example/a2a", "http://localhost:8080/", "https://proxy.example/a2a"),
        ("https://proxy.example", "http://localhost:8080", "https://proxy.example/"),
        ("https://proxy.example", "/rpc", "https://proxy.example/rpc"),
        ("https://proxy.example", "https://proxy.example/x/y", "https://proxy.example/x/y"),
        ("https://p.example/q/.well-known/agent-card.json", "http://i/a2a?k=1", "https://p.example/q/a2a?k=1"),
    ] {
        assert_eq!(called(typed, card_url, false).await.unwrap(), expected, "{typed} {card_url}");
    }
    for (typed, card_url) in [("https", "https"), ("http", "http"), ("http", "https")] {
        let card_url = format!("{card_url}://other.example/a2a");
        assert_eq!(called(&format!("{typed}://proxy.example"), &card_url, true).await.unwrap(), card_url);
    }
    for card_url in ["http://other.example/a2a", "http://proxy.example/a2a", "ftp://other.example/a2a"] {
        let error = called("https://proxy.example", card_url, true).await.unwrap_err().to_string();
        assert!(error.contains("without encryption") && error.contains(card_url), "{error}");
    }
}

#[test]
fn an_address_without_a_scheme_is_private_or_on_this_machine_and_what_is_none_is_refused() {
    for (typed, expected) in [
        ("agent.example", "https://agent.example"),
        ("localhost:9/some/", "http://localhost:9/some"),
        ("127.0.0.1:9", "http://127.0.0.1:9"),
        (" https://agent.example/a ", "https://agent.example/a"),
    ] {
        assert_eq!(Called::new(typed).address().unwrap(), expected);
    }
    for typed in ["", "ftp://x", "http://user:sesame@host/", "http://"] {
        let Err(error @ ClientError::Address { .. }) = Called::new(typed).address() else { panic!("{typed:?}") };
        assert!(!error.to_string().contains("sesame"), "{error}");
    }
}

#[test]
fn users_and_queries_are_redacted_and_nothing_else() {
    for (url, expected) in [
        ("https://agent.example/a/b", "https://agent.example/a/b"),
        ("agent.example:8080/@me/x", "agent.example:8080/@me/x"),
        ("http://host/a?key=secret", "http://host/a?…"),
        ("host/a#secret", "host/a#…"),
        ("http://user:secret@host:9/a", "http://***@host:9/a"),
        ("http://user:sec?r#et@host", "http://***@host"),
        ("user:secret@host", "***@host"),
        ("", ""),
    ] {
        assert_eq!(redact_url(url), expected, "{url}");
    }
}
