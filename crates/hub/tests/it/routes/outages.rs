//! Receivers that do not answer: what is owed waits in order, up to so much, and an alert says so until it is over.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_host::config::size::Count;
use switchboard_host::config::time_span::TimeSpan;

use super::{lines, route, server, server_with, shown, until};
use crate::receiver::Receiver;
use crate::running::{Running, folder};

async fn publish(running: &Running, number: u64) {
    let line = json!({ "topic": "deploy.web", "payload": { "number": number } });
    assert_eq!(running.post("/publish", "ann", &line).await.0, 202);
}

fn numbers(body: &Value) -> Vec<u64> {
    body["items"].as_array().unwrap().iter().map(|item| item["payload"]["number"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn a_post_that_fails_is_tried_again_as_it_was_and_the_others_wait() {
    let (data, receiver) = (folder(), Receiver::start().await);
    let running = server(data.path()).await;
    route(&running, json!({ "name": "told", "when": { "topic": "deploy.#" }, "then": { "url": receiver.url } })).await;
    receiver.answer_with(503);
    publish(&running, 0).await;
    until(&running, async || (!receiver.got().is_empty()).then_some(())).await;
    publish(&running, 1).await;
    let alert = lines(&running, "alert.route_failing.fired", 1).await;
    assert!(alert[0]["detail"]["problem"].as_str().unwrap().contains("503"), "{alert:?}");
    let seen = shown(&running, "told", "vic").await;
    assert_eq!((&seen["owed"], &seen["failing"], &seen["paused"]), (&json!(2), &json!(true), &json!(false)), "{seen}");
    receiver.answer_with(200);
    until(&running, async || (shown(&running, "told", "ann").await["owed"] == 0).then_some(())).await;
    let got = receiver.got();
    let (failed, told): (Vec<_>, Vec<_>) = got.iter().partition(|one| one.status == 503);
    assert!(failed.len() >= 3, "{}", failed.len());
    for one in &failed {
        assert_eq!((&one.headers["webhook-id"], numbers(&one.body)), (&failed[0].headers["webhook-id"], vec![0]));
        assert_eq!(one.text, failed[0].text);
    }
    assert_eq!(told[0].headers["webhook-id"], failed[0].headers["webhook-id"], "as it was tried");
    assert_eq!(told.iter().flat_map(|one| numbers(&one.body)).collect::<Vec<_>>(), [0, 1]);
    lines(&running, "hub.route.recovered.told", 1).await;
    lines(&running, "alert.route_failing.resolved", 1).await;
    let seen = shown(&running, "told", "vic").await;
    assert_eq!((&seen["failing"], &seen["lastError"]["problem"]), (&json!(false), &json!("the endpoint answered 503")));
    running.stop().await;
}

#[tokio::test]
async fn what_a_receiver_does_not_want_is_given_up_and_the_next_is_told() {
    let (data, receiver) = (folder(), Receiver::start().await);
    let running = server_with(data.path(), |config| config.webhooks.retries = vec![TimeSpan::from_seconds(1)]).await;
    let content = json!({ "number": "{{ payload.number }}" });
    let hook =
        json!({ "name": "told", "when": { "topic": "deploy.#" }, "then": { "url": receiver.url }, "content": content });
    route(&running, hook).await;
    receiver.answer_with(400);
    publish(&running, 0).await;
    let dropped = lines(&running, "hub.route.dropped.told", 1).await;
    assert!(dropped[0]["problem"].as_str().unwrap().contains("400"), "{dropped:?}");
    // The last of all attempts as well.
    receiver.answer_with(500);
    publish(&running, 1).await;
    let dropped = lines(&running, "hub.route.dropped.told", 2).await;
    assert!(dropped[1]["problem"].as_str().unwrap().contains("the last attempt"), "{dropped:?}");
    receiver.answer_with(200);
    publish(&running, 2).await;
    until(&running, async || receiver.got().iter().any(|one| one.status == 200).then_some(())).await;
    let told: Vec<(u16, String)> =
        receiver.got().iter().map(|one| (one.status, one.body["number"].as_str().unwrap().to_owned())).collect();
    let right = [(400, "0"), (500, "1"), (500, "1"), (200, "2")].map(|(status, number)| (status, number.to_owned()));
    assert_eq!(told, right);
    running.stop().await;
}

#[tokio::test]
async fn a_route_that_owes_too_much_is_paused_until_half_is_delivered() {
    let (data, receiver) = (folder(), Receiver::start().await);
    let change = |config: &mut switchboard_host::config::Config| {
        config.hub.routes.owed = Count::new(4);
        config.hub.routes.batch = Count::new(1);
    };
    let running = server_with(data.path(), change).await;
    route(&running, json!({ "name": "told", "when": { "topic": "deploy.#" }, "then": { "url": receiver.url } })).await;
    receiver.answer_with(503);
    for number in 0..7 {
        publish(&running, number).await;
    }
    let paused = lines(&running, "hub.route.paused.told", 1).await;
    assert_eq!(paused[0]["owed"], 4);
    let seen =
        until(&running, async || Some(shown(&running, "told", "vic").await).filter(|it| it["leftOut"] == 3)).await;
    assert_eq!((&seen["owed"], &seen["paused"]), (&json!(4), &json!(true)), "{seen}");
    lines(&running, "alert.route_failing.fired", 1).await;
    running.stop().await;

    // The next process counts what is owed, and tries it as the last one did.
    let running = server_with(data.path(), change).await;
    let seen = shown(&running, "told", "vic").await;
    assert_eq!((&seen["owed"], &seen["paused"]), (&json!(4), &json!(true)), "{seen}");
    publish(&running, 7).await;
    until(&running, async || (shown(&running, "told", "ann").await["leftOut"] == 1).then_some(())).await;
    receiver.answer_with(200);
    running.clock.advance(Duration::from_secs(60 * 60));
    let resumed = lines(&running, "hub.route.resumed.told", 1).await;
    assert_eq!(resumed[0]["leftOut"], 1);
    until(&running, async || (shown(&running, "told", "ann").await["owed"] == 0).then_some(())).await;
    publish(&running, 8).await;
    let told = || -> Vec<u64> {
        receiver.got().iter().filter(|one| one.status == 200).flat_map(|one| numbers(&one.body)).collect()
    };
    until(&running, async || (told().len() == 5).then_some(())).await;
    assert_eq!(told(), [0, 1, 2, 3, 8]);
    assert_eq!(lines(&running, "hub.route.paused.told", 1).await.len(), 1, "it is said once");
    lines(&running, "alert.route_failing.resolved", 1).await;
    running.stop().await;
}

#[tokio::test]
async fn a_route_that_is_disabled_or_removed_forgets_what_it_owes() {
    let (data, receiver) = (folder(), Receiver::start().await);
    let running = server(data.path()).await;
    let hook = |enabled: bool| json!({ "name": "told", "when": { "topic": "deploy.#" }, "then": { "url": receiver.url }, "enabled": enabled });
    route(&running, hook(true)).await;
    // Who has been told of an event says that it was read.
    let witness = Receiver::start().await;
    route(&running, json!({ "name": "witness", "when": { "topic": "deploy.#" }, "then": { "url": witness.url } }))
        .await;
    receiver.answer_with(503);
    publish(&running, 0).await;
    until(&running, async || (shown(&running, "told", "ann").await["owed"] == 1).then_some(())).await;
    assert_eq!(running.ask("PUT /api/routes/told", "ann", &[], &hook(false).to_string()).await.0, 200);
    until(&running, async || (shown(&running, "told", "ann").await["owed"] == 0).then_some(())).await;
    publish(&running, 1).await;
    until(&running, async || witness.got().iter().any(|one| numbers(&one.body).contains(&1)).then_some(())).await;
    receiver.answer_with(200);
    assert_eq!(running.ask("PUT /api/routes/told", "ann", &[], &hook(true).to_string()).await.0, 200);
    publish(&running, 2).await;
    until(&running, async || receiver.got().iter().any(|one| one.status == 200).then_some(())).await;
    let told: Vec<u64> =
        receiver.got().iter().filter(|one| one.status == 200).flat_map(|one| numbers(&one.body)).collect();
    assert_eq!(told, [2]);
    receiver.answer_with(503);
    publish(&running, 3).await;
    until(&running, async || (shown(&running, "told", "ann").await["owed"] == 1).then_some(())).await;
    assert_eq!(running.ask("DELETE /api/routes/told", "ann", &[], "").await.0, 204);
    route(&running, hook(true)).await;
    receiver.answer_with(200);
    publish(&running, 4).await;
    until(&running, async || receiver.got().iter().any(|one| numbers(&one.body).contains(&4)).then_some(())).await;
    let told: Vec<u64> =
        receiver.got().iter().filter(|one| one.status == 200).flat_map(|one| numbers(&one.body)).collect();
    assert!(!told.contains(&1) && !told.contains(&0), "{told:?}");
    running.stop().await;
}
