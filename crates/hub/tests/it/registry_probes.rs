//! Probes of agents elsewhere, by a simulated clock.

use std::time::Duration;

use serde_json::{Value, json};

use crate::card_server::CardServer;
use crate::running::{Running, folder};

/// Lets probes happen until an agent is shown as a condition says.
async fn until(running: &Running, condition: impl Fn(&Value) -> bool) -> Value {
    tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            let (_, shown) = running.get("/api/agents/far", "ann").await;
            if condition(&shown) {
                return shown;
            }
            running.clock.advance(Duration::from_secs(15));
        }
    })
    .await
    .unwrap()
}

async fn running(data: &std::path::Path, files: &std::path::Path, far: &CardServer, more: &str) -> Running {
    let agents = format!(
        "agents:\n  - name: far\n    url: {}\n    skills: [{{ name: own, description: of ours }}]\n{more}",
        far.url
    );
    std::fs::write(files.join("agents.yaml"), agents).unwrap();
    Running::of_workspace(data, files, |config| {
        // One retry of a server error takes a moment, and the limit of a probe is no matter here.
        config.hub.probe.timeout = switchboard_host::config::time_span::TimeSpan::from_minutes(1);
    })
    .await
}

fn skills(shown: &Value) -> Vec<&str> {
    shown["skills"].as_array().unwrap().iter().map(|skill| skill["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_agent_is_down_after_failures_and_up_after_one_success_and_its_skills_follow_its_card() {
    let (data, files) = (folder(), folder());
    let far = CardServer::start(&["review", "own"]).await;
    let running = running(data.path(), files.path(), &far, "").await;
    let shown = until(&running, |shown| skills(shown).len() == 2).await;
    assert_eq!(skills(&shown), ["own", "review"], "a skill of the file wins by its id");
    until(&running, |_| far.not_modified() > 0).await;
    far.offer(&["triage"]);
    until(&running, |shown| skills(shown) == ["own", "triage"]).await;

    far.fail(true);
    let shown = until(&running, |shown| shown["probe"]["up"] == false).await;
    assert_eq!(skills(&shown), ["own", "triage"], "the last good card counts");
    assert!(shown["probe"]["error"].as_str().unwrap().contains("500"), "{shown}");
    until(&running, |shown| shown["breaker"] != "closed").await;
    far.fail(false);
    until(&running, |shown| shown["probe"]["up"] == true).await;
    until(&running, |shown| shown["breaker"] == "closed").await;
    let topics = running.topics("hub.agent.%23", 4).await;
    let card = "hub.agent.card_changed.far";
    assert_eq!(topics, [card, card, "hub.agent.down.far", "hub.agent.up.far"]);
    running.stop().await;
}

#[tokio::test]
async fn a_card_that_is_held_counts_once_it_is_accepted() {
    let (data, files) = (folder(), folder());
    let far = CardServer::start(&["review"]).await;
    let running = running(data.path(), files.path(), &far, "    cardChanges: hold\n").await;
    until(&running, |shown| skills(shown) == ["own", "review"]).await;
    far.offer(&["deploy"]);
    let (status, shown) = running.ask("POST /api/agents/far:refresh", "ann", &[], "").await;
    assert_eq!((status, skills(&shown)), (200, vec!["own", "review"]));
    let etag = shown["held"]["etag"].clone();
    let (status, refusal) = running.post("/api/agents/far:accept", "ann", &json!({ "etag": "other" })).await;
    assert_eq!((status, &refusal["code"]), (412, &json!("VERSION")));
    assert_eq!(running.post("/api/agents/far:accept", "vic", &json!({ "etag": etag })).await.0, 403);
    let (status, shown) = running.post("/api/agents/far:accept", "ann", &json!({ "etag": etag })).await;
    assert_eq!((status, skills(&shown), &shown["held"]), (200, vec!["own", "deploy"], &Value::Null));
    running.stop().await;
}
