//! Routing by what is known of agents: how they have done, words of their skills, rules that are read again.

use serde_json::{Value, json};
use switchboard_engine::clock::SimulatedClock;
use switchboard_host::config::Config;
use switchboard_host::config::agent_name::AgentName;
use switchboard_host::config::routing::{Keyword, KeywordPlace, Keywords};
use switchboard_host::config::value::Scalar;

use crate::health::{counted, server};
use crate::running::{Running, START, folder};

/// The routing decision of a message to the root in a conversation of its own.
async fn routed(running: &Running, context: usize, text: &str, hints: Value) -> Value {
    let message = json!({
        "messageId": format!("m{context}"), "contextId": format!("c{context}"), "role": "ROLE_USER",
        "parts": [{ "text": text }], "metadata": hints,
    });
    let (status, answer) = running.post("/a2a/message:send", "bob", &json!({ "message": message })).await;
    assert_eq!(status, 200, "{answer}");
    answer["task"]["metadata"]["switchboard/routing"].clone()
}

#[tokio::test]
async fn an_agent_that_fails_is_picked_less_and_weights_outlive_a_restart() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = server(data.path(), &clock).await;
    let acting = || json!({ "skill": "acting" });
    let mut agents = Vec::new();
    for context in 0..20 {
        let decision = routed(&running, context, "hello", acting()).await;
        assert_eq!((&decision["by"], &decision["weight"]), (&json!("skill"), &json!(1.0)), "{decision}");
        agents.push(decision["agent"].clone());
    }
    assert!(agents.contains(&json!("echo")) && agents.contains(&json!("other")), "{agents:?}");
    for _ in 0..60 {
        running.send("bob", "echo", "fail").await;
    }
    let health = counted(&running, 80).await;
    let rate = health["agents"][0]["successRate"].as_f64().unwrap();
    assert!(rate < 0.3, "{health}");
    running.stop().await;
    let running = server(data.path(), &clock).await;
    let mut weights = Vec::new();
    for context in 100..140 {
        let decision = routed(&running, context, "hello", acting()).await;
        weights.push((decision["agent"].clone(), decision["weight"].clone()));
    }
    let of_echo: Vec<_> = weights.iter().filter(|(agent, _)| agent == "echo").collect();
    assert!(!of_echo.is_empty(), "it has not lost all of them: {weights:?}");
    assert!(of_echo.len() < 20, "it has at most a fourth of the weight: {weights:?}");
    assert!(of_echo.iter().all(|(_, weight)| weight.as_f64() < Some(0.5)), "{weights:?}");
    running.stop().await;
}

#[tokio::test]
async fn changed_rules_count_from_the_next_message_on() {
    let data = folder();
    let running = Running::with(
        data.path(),
        SimulatedClock::at(START),
        |config| config.hub.roles.helm = AgentName::from_text("echo").ok(),
        Default::default(),
    )
    .await;
    let decision = routed(&running, 1, "ship it", json!({})).await;
    assert_eq!((&decision["agent"], &decision["by"]), (&json!("echo"), &json!("default")));
    let mut config = Config::default();
    let agent = AgentName::from_text("other").ok();
    let rule = Keyword { text: "ship it".to_owned(), by: KeywordPlace::Word, agent, skill: None };
    config.hub.routing.keywords = Keywords(vec![rule]);
    running.reloads.tell(&config);
    let decision = routed(&running, 2, "ship it", json!({})).await;
    assert_eq!((&decision["agent"], &decision["by"]), (&json!("other"), &json!("keyword")));
    running.stop().await;
}

#[tokio::test]
async fn the_words_of_a_configured_skill_pick_its_agent() {
    let (data, workspace) = (folder(), folder());
    let agents = "agents:
  - { name: guide, builtin: echo }
  - name: cook
    builtin: echo
    skills: [{ name: cook, description: Cooks, keywords: [dinner] }]
";
    std::fs::write(workspace.path().join("agents.yaml"), agents).unwrap();
    let running = Running::of_workspace(data.path(), workspace.path(), |_| {}).await;
    let decision = routed(&running, 1, "Dinner, please", json!({})).await;
    assert_eq!((&decision["agent"], &decision["skill"]), (&json!("cook"), &json!("cook")), "{decision}");
    running.stop().await;
}
