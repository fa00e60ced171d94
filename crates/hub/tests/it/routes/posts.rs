//! POSTs: in order, signed, and with whatever others have written as a text and nothing else.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_host::config::Config;
use switchboard_host::config::size::{Count, Size};
use switchboard_webhooks::{Secret, WebhookService, sign};

use super::{configure, lines, route, server_with, shown, until};
use crate::counted_store::CountedStore;
use crate::receiver::{Received, Receiver};
use crate::running::{Running, folder};

async fn got(running: &Running, receiver: &Receiver, count: usize) -> Vec<Received> {
    until(running, async || {
        let got = receiver.got();
        (got.len() >= count && super::is_settled(running).await).then_some(got)
    })
    .await
}

#[tokio::test]
async fn events_are_posted_together_in_order_and_signed() {
    let data = folder();
    let receiver = Receiver::start().await;
    let running = server_with(data.path(), |config| config.hub.routes.batch = Count::new(3)).await;
    route(&running, json!({ "name": "told", "when": { "topic": "deploy.#" }, "then": { "url": receiver.url } })).await;
    for number in 0..7 {
        let line = json!({ "topic": "deploy.web", "payload": { "number": number } });
        assert_eq!(running.post("/publish", "ann", &line).await.0, 202);
    }
    let numbers = |got: &[Received]| -> Vec<u64> {
        let items = got.iter().flat_map(|one| one.body["items"].as_array().unwrap());
        items.map(|item| item["payload"]["number"].as_u64().unwrap()).collect()
    };
    let all = until(&running, async || Some(receiver.got()).filter(|got| numbers(got).len() >= 7)).await;
    assert_eq!(numbers(&all), [0, 1, 2, 3, 4, 5, 6]);
    for one in &all {
        let items = one.body["items"].as_array().unwrap();
        assert!(items.len() <= 3, "{}", items.len());
        assert_eq!((&one.body["route"], &items[0]["topic"]), (&json!("told"), &json!("deploy.web")));
        let id = format!("told:{}:{}", items[0]["id"].as_str().unwrap(), items.last().unwrap()["id"].as_str().unwrap());
        assert_eq!((&one.headers["webhook-id"], &one.headers["content-type"]), (&id, &"application/json".to_owned()));
    }
    running.stop().await;
}

#[tokio::test]
async fn a_post_is_signed_with_the_secret_of_its_owner_or_the_one_it_names() {
    let (data, receiver) = (folder(), Receiver::start().await);
    let (store, _) = CountedStore::open(data.path());
    let mut config = Config::default();
    configure(&mut config);
    config.hub.registrations.env = vec!["CARGO_PKG_NAME".to_owned()];
    let running = Running::on_store(store.clone(), data.path(), config).await;
    route(&running, json!({ "name": "own", "when": { "topic": "deploy.web" }, "then": { "url": receiver.url } })).await;
    let named = json!({ "url": receiver.url, "secretEnv": "CARGO_PKG_NAME" });
    route(&running, json!({ "name": "named", "when": { "topic": "deploy.app" }, "then": named })).await;
    assert_eq!(running.post("/publish", "ann", &json!({ "topic": "deploy.web" })).await.0, 202);
    let one = got(&running, &receiver, 1).await.remove(0);
    let header = |name: &str| one.headers[name].as_str();
    let timestamp = header("webhook-timestamp").parse().unwrap();
    let secrets = WebhookService::of_store(store, Arc::new(running.clock.clone())).secret(&"ann".into()).await.unwrap();
    let secret = Secret::parse(&secrets.secrets[0]).unwrap();
    assert_eq!(header("webhook-signature"), sign(&[secret], header("webhook-id"), timestamp, one.text.as_bytes()));
    // What is in the variable is no secret, and is not sent instead.
    assert_eq!(running.post("/publish", "ann", &json!({ "topic": "deploy.app" })).await.0, 202);
    let failed = until(&running, async || {
        Some(shown(&running, "named", "ann").await).filter(|seen| seen["lastError"] != Value::Null)
    })
    .await;
    let problem = failed["lastError"]["problem"].as_str().unwrap();
    assert!(problem.contains("whsec_") && !problem.contains("switchboard-hub"), "{problem}");
    assert_eq!(receiver.got().len(), 1);
    running.stop().await;
}

#[tokio::test]
async fn what_an_event_says_becomes_a_text_and_no_member() {
    let (data, receiver) = (folder(), Receiver::start().await);
    let running = server_with(data.path(), |config| config.hub.routes.content = Size::from_kibibytes(4)).await;
    let content = json!({
        "text": "{{ text | slack }}",
        "blocks": [{ "type": "section", "fields": ["{{ correlationId }}", "{{ payload.statusUpdate.taskId }}"] }],
        "routing_key": "k", "count": 3, "open": true,
    });
    let hook = json!({ "name": "chat", "when": { "topic": "task.completed.echo" }, "then": { "url": receiver.url }, "content": content });
    route(&running, hook).await;
    let hostile = [
        "\", \"routing_key\": \"mine\", \"x\": \"",
        "{{ payload }} {% raw %} {{ source.caller }}",
        "<!channel> <https://evil.example|click> & more",
        "\r\nX-Injected: yes\r\n\r\n\u{0}\u{7f}\u{202e}",
        "\\u0022}]}",
    ];
    for (number, text) in hostile.iter().enumerate() {
        let message = json!({ "parts": [{ "text": text }] });
        running.send_with("bob", "echo", message, &[&format!("X-Correlation-Id: w-{number}")]).await;
    }
    let all = got(&running, &receiver, hostile.len()).await;
    for (number, (one, text)) in all.iter().zip(hostile).enumerate() {
        let body = one.body.as_object().unwrap_or_else(|| panic!("{}", one.text));
        let names: Vec<&str> = body.keys().map(String::as_str).collect();
        assert_eq!(names, ["text", "blocks", "routing_key", "count", "open"], "{}", one.text);
        assert_eq!((&body["routing_key"], &body["count"], &body["open"]), (&json!("k"), &json!(3), &json!(true)));
        let said = text.to_uppercase().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        assert_eq!(body["text"], said.as_str());
        assert_eq!(body["blocks"][0]["fields"][0], format!("w-{number}"));
        assert!(!one.headers.contains_key("x-injected") && !one.headers.contains_key("x_injected"));
        assert_eq!(one.headers["webhook-id"].split(':').next(), Some("chat"));
    }
    // What is too long is cut, and a payload that is too large is left out.
    let long = json!({ "parts": [{ "text": "a".repeat(3_000) }] });
    running.send_with("bob", "echo", long, &["X-Correlation-Id: long"]).await;
    let large = json!({ "parts": [{ "text": "b".repeat(8_000) }] });
    running.send_with("bob", "echo", large, &["X-Correlation-Id: large"]).await;
    let all = got(&running, &receiver, hostile.len() + 2).await;
    let texts: Vec<usize> = all.iter().rev().take(2).map(|one| one.body["text"].as_str().unwrap().len()).collect();
    assert_eq!(texts, [0, 3_000]);
    running.stop().await;
}

#[tokio::test]
async fn an_address_inside_the_network_is_refused_unless_it_is_allowed() {
    let (data, receiver) = (folder(), Receiver::start().await);
    let running = server_with(data.path(), |config| config.webhooks.allowed_cidrs.clear()).await;
    route(&running, json!({ "name": "in", "when": { "topic": "deploy.#" }, "then": { "url": receiver.url } })).await;
    assert_eq!(running.post("/publish", "ann", &json!({ "topic": "deploy.web" })).await.0, 202);
    let dropped = lines(&running, "hub.route.dropped.in", 1).await;
    let problem = dropped[0]["problem"].as_str().unwrap();
    assert!(problem.contains("webhooks.allowedHosts") && !problem.contains("/hook"), "{problem}");
    assert_eq!(receiver.got().len(), 0);
    running.stop().await;
}
