//! What the cards of agents elsewhere may say of their own gates.

use serde_json::{Value, json};

use super::{Gates, state};
use crate::remote::script::{Reply, Scripted, card, task};

/// A card with these skills, and what it asks for them.
fn asking(skills: &[&str], modes: &Value, radii: &Value) -> Value {
    let mut card = card(false);
    let of = |id: &&str| json!({ "id": id, "name": id, "description": "of the card", "tags": [] });
    card["skills"] = skills.iter().map(of).collect();
    let extension = |name: &str, skills: &Value| json!({ "uri": format!("https://proto-labs.ai/a2a/ext/{name}"), "params": { "skills": skills } });
    let extensions = card["capabilities"]["extensions"].as_array().cloned().unwrap_or_default();
    let declared = [extension("hitl-mode-v1", modes), extension("blast-v1", radii)];
    card["capabilities"]["extensions"] = extensions.into_iter().chain(declared).collect();
    card
}

async fn remote() -> Scripted {
    let card = asking(&["hello", "data"], &json!({ "hello": { "mode": "gated", "reviewer": "caller" } }), &json!({}));
    Scripted::with_card(card, |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_COMPLETED", "m") })),
        _ => Reply::Error(-32601),
    })
    .await
}

/// The agent, once its card was looked at now.
async fn refreshed(gates: &Gates) -> Value {
    let (status, shown) = gates.running.ask("POST /api/agents/ops:refresh", "ann", &[], "").await;
    assert_eq!(status, 200, "{shown}");
    shown
}

/// The modes of the skills, as the agent is shown: one for all, or one for each.
fn modes(shown: &Value, skills: &[&str]) -> Vec<String> {
    let policy = &shown["policy"];
    let for_all = policy["mode"].as_str().filter(|_| policy["skills"] == json!({}));
    let mode = |skill: &&str| policy["skills"][skill]["mode"].as_str().or(for_all);
    skills.iter().map(|skill| mode(skill).unwrap_or("-").to_owned()).collect()
}

#[tokio::test]
async fn a_card_raises_at_once_and_what_it_lowers_waits_until_it_is_accepted_over_restarts_too() {
    let remote = remote().await;
    let agents = format!("agents: [{{ name: ops, url: \"{}\" }}]\n", remote.url());
    let gates = Gates::with(&agents, Vec::new(), |_| {}).await;
    assert_eq!(modes(&refreshed(&gates).await, &["hello", "data"]), ["gated", "autonomous"]);
    let id = gates.held("hello", "x").await;
    let (_, asked) = gates.running.get(&format!("/a2a/tasks/{id}"), "bob").await;
    assert_eq!(asked["metadata"]["switchboard/question"]["reviewer"], "operator", "a card names no reviewer");
    assert_eq!(state(&gates.send("ops", "data", "x").await), "COMPLETED");

    remote.show(asking(
        &["hello", "data"],
        &json!({ "hello": { "mode": 3 } }),
        &json!({ "data": { "radius": "fleet" } }),
    ));
    let shown = refreshed(&gates).await;
    assert_eq!(
        (modes(&shown, &["hello", "data"]), &shown["held"]),
        (vec!["gated".into(), "gated".into()], &Value::Null)
    );
    gates.held("data", "x").await;

    // It takes all of it back, and adds a skill.
    remote.show(asking(&["hello", "data", "more"], &json!({ "hello": { "mode": "veto" } }), &json!({})));
    let shown = refreshed(&gates).await;
    assert_eq!(modes(&shown, &["hello", "data", "more"]), ["gated", "gated", "-"], "{shown}");
    let lowered = &shown["held"]["policy"]["skills"];
    assert_eq!((&lowered["hello"]["mode"], &lowered["data"]["mode"]), (&json!("veto"), &json!("autonomous")));
    let gates = gates.killed(&agents, Vec::new()).await;
    for skill in ["hello", "data", "more", ""] {
        gates.held(skill, "x").await;
    }
    let shown = refreshed(&gates).await;
    let etag = shown["held"]["etag"].clone();
    let accept =
        async |etag: Value| gates.running.post("/api/agents/ops:accept", "ann", &json!({ "etag": etag })).await;
    assert_eq!(accept(json!("another")).await.0, 412);
    let (status, shown) = accept(etag).await;
    assert_eq!((status, &shown["held"]), (200, &Value::Null), "{shown}");
    assert_eq!(modes(&shown, &["hello", "data", "more"]), ["veto", "autonomous", "autonomous"]);
    let sent = remote.calls("SendMessage").len();
    assert_eq!(state(&gates.send("ops", "more", "x").await), "COMPLETED");
    assert_eq!(remote.calls("SendMessage").len(), sent + 1, "nothing else has begun meanwhile");
    let gates = gates.killed(&agents, Vec::new()).await;
    assert_eq!(modes(&refreshed(&gates).await, &["hello", "data"]), ["veto", "autonomous"]);
    gates.stop().await;
}

#[tokio::test]
async fn a_card_that_is_held_raises_all_the_same_and_no_card_says_more_than_the_policy() {
    let remote = remote().await;
    let agents = format!(
        "agents: [{{ name: ops, url: \"{}\", cardChanges: hold, policy: {{ skills: {{ hello: {{ mode: autonomous }} }} }} }}]\n",
        remote.url()
    );
    let gates = Gates::with(&agents, Vec::new(), |_| {}).await;
    let all = ["hello", "data"];
    assert_eq!(modes(&refreshed(&gates).await, &all), ["autonomous", "autonomous"], "the policy says what hello is");
    let raised = json!({ "hello": { "mode": "compound" }, "data": { "mode": "gated" } });
    remote.show(asking(&["hello", "data", "more"], &raised, &json!({})));
    let shown = refreshed(&gates).await;
    assert!(shown["held"]["etag"].is_string(), "another skill is held: {shown}");
    assert_eq!(modes(&shown, &all), ["autonomous", "gated"]);
    gates.held("data", "x").await;
    assert_eq!(state(&gates.send("ops", "hello", "x").await), "COMPLETED");
    let gates = gates.killed(&agents, Vec::new()).await;
    gates.held("data", "x").await;
    gates.stop().await;
}

#[tokio::test]
async fn a_card_that_asks_for_an_endless_veto_has_its_skill_wait_and_not_begin_at_once() {
    let remote = remote().await;
    remote.show(asking(&["hello"], &json!({ "hello": { "mode": "veto", "vetoTtlMs": u64::MAX } }), &json!({})));
    let agents = format!("agents: [{{ name: ops, url: \"{}\" }}]\n", remote.url());
    let gates = Gates::with(&agents, Vec::new(), |_| {}).await;
    assert_eq!(refreshed(&gates).await["policy"]["ttlMs"], 7 * 24 * 60 * 60 * 1000);
    let id = gates.held("hello", "x").await;
    gates.running.clock.advance(std::time::Duration::from_secs(60 * 60));
    gates.held("hello", "y").await;
    let (_, waiting) = gates.running.get(&format!("/a2a/tasks/{id}"), "bob").await;
    assert_eq!(state(&waiting), "AUTH_REQUIRED", "{waiting}");
    assert_eq!(remote.calls("SendMessage").len(), 0);
    gates.stop().await;
}
