//! The planner: skills by what they declare to change, by what was observed of them, and what drifts from it.

use serde_json::{Value, json};
use switchboard_engine::clock::SimulatedClock;

use crate::health::{counted, server, until};
use crate::running::{Running, START, folder};

fn goal(want: &str) -> Value {
    json!({ "domain": "board", "path": "open", "want": want })
}

pub(crate) fn moving(text: &str) -> Value {
    json!({ "parts": [{ "text": text }], "metadata": { "skill": "moving" } })
}

#[tokio::test]
async fn a_plan_names_the_skills_that_fit_best_first_and_starts_the_best() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = server(data.path(), &clock).await;
    let (status, plan) = running.post("/api/plan", "bob", &goal("down")).await;
    let declared = |agent: &str| json!({ "agent": agent, "skill": "moving", "score": 0.8, "delta": -1.0, "trust": 0.8, "samples": 0 });
    assert_eq!((status, &plan), (200, &json!({ "candidates": [declared("echo"), declared("other")] })));
    assert_eq!(running.post("/api/plan", "bob", &goal("up")).await.1, json!({ "candidates": [] }));
    // A key of one agent plans with that one only.
    let (_, plan) = running.post("/api/plan", "cat", &goal("down")).await;
    assert_eq!(plan, json!({ "candidates": [declared("echo")] }));
    let (status, refusal) = running.post("/api/plan", "bob", &json!({ "domain": "board", "limit": 0 })).await;
    let keys: Vec<&str> =
        refusal["problems"].as_array().unwrap().iter().map(|problem| problem["key"].as_str().unwrap()).collect();
    assert_eq!((status, keys), (400, vec!["path", "want", "limit"]));

    let mut wrong = goal("down");
    for (dispatch, member) in [
        (json!({ "message": "close", "surprise": 1 }), "dispatch.surprise"),
        (json!({ "message": 1 }), "dispatch.message"),
        (json!({}), "dispatch.message"),
        (json!("close"), "dispatch"),
    ] {
        wrong["dispatch"] = dispatch;
        let (status, refusal) = running.post("/api/plan", "bob", &wrong).await;
        assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!(member)), "{wrong}: {refusal}");
        assert_eq!(refusal["problems"].as_array().unwrap().len(), 1, "{refusal}");
    }

    // From five outcomes on what was observed counts: echo fails, and comes last.
    for _ in 0..5 {
        running.send_with("bob", "echo", moving("fail"), &[]).await;
    }
    counted(&running, 5).await;
    let mut asked = goal("down");
    asked["limit"] = 1.into();
    asked["dispatch"] = json!({ "message": "close one" });
    let (_, plan) = running.post("/api/plan", "bob", &asked).await;
    assert_eq!(plan["candidates"], json!([declared("other")]));
    let task = plan["taskId"].as_str().unwrap();
    let (_, shown) = running.ask(&format!("GET /a2a/other/tasks/{task}"), "bob", &["A2A-Version: 1.0"], "").await;
    assert_eq!(shown["metadata"]["switchboard/routing"]["skill"], "moving", "{shown}");
    let (_, task) = running.get(&format!("/api/tasks/{task}"), "vic").await;
    assert_eq!(task["via"], "api");
    let (_, plan) = running.post("/api/plan", "bob", &goal("down")).await;
    assert_eq!(plan["candidates"][1]["samples"], 5);
    assert!(plan["candidates"][1]["trust"].as_f64().unwrap() < 0.3, "{plan}");
    // Nothing fits: nothing is started.
    let mut none = goal("up");
    none["dispatch"] = json!({ "message": "open one" });
    assert_eq!(running.post("/api/plan", "bob", &none).await.0, 404);
    counted(&running, 6).await;
    // Under a key the first request counts, though another candidate would be the best by now.
    let keyed = async |text: &str| {
        let mut asked = goal("down");
        asked["dispatch"] = json!({ "message": text });
        running.ask("POST /api/plan", "bob", &["Idempotency-Key: k"], &asked.to_string()).await
    };
    let (_, first) = keyed("fail").await;
    for _ in 0..6 {
        running.send_with("bob", "other", moving("fail"), &[]).await;
    }
    counted(&running, 13).await;
    for _ in 0..9 {
        running.send_with("bob", "echo", moving("close"), &[]).await;
    }
    counted(&running, 22).await;
    let (status, again) = keyed("fail").await;
    assert_ne!(again["candidates"][0]["agent"], first["candidates"][0]["agent"], "{again}");
    assert_eq!((status, &again["taskId"]), (200, &first["taskId"]), "{again}");
    let (status, refusal) = keyed("another").await;
    assert_eq!((status, &refusal["code"]), (409, &json!("IDEMPOTENCY_KEY_REUSED")), "{refusal}");
    running.stop().await;
}

#[tokio::test]
async fn drift_is_an_alert_after_three_contradictions_until_three_agreements() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = server(data.path(), &clock).await;
    let states = |alerts: &Value| -> Vec<Value> {
        let items = alerts["items"].as_array().unwrap().iter();
        items.filter(|alert| alert["alert"] == "effect_drift").map(|alert| alert["state"].clone()).collect()
    };
    // One that agrees between them begins the count anew.
    for text in ["change 1", "change 2", "change -1", "change 1", "change 1"] {
        running.send_with("bob", "echo", moving(text), &[]).await;
    }
    counted(&running, 5).await;
    assert!(states(&running.get("/api/alerts", "vic").await.1).is_empty());
    running.stop().await;
    // The count outlives the process.
    let running = server(data.path(), &clock).await;
    running.send_with("bob", "echo", moving("change 1"), &[]).await;
    until(&running, "/api/alerts", "vic", |alerts| states(alerts) == ["firing"]).await;
    for text in ["change -1", "change -3", "change -1"] {
        running.send_with("bob", "echo", moving(text), &[]).await;
    }
    until(&running, "/api/alerts", "vic", |alerts| states(alerts) == ["resolved"]).await;
    let deltas = running.topics("world.state.delta", 9).await;
    assert_eq!(deltas.len(), 9, "each change is one line of the journal");
    running.stop().await;
}

#[tokio::test]
async fn a_configured_effect_is_planned_with_and_declared_on_the_card() {
    let (data, workspace) = (folder(), folder());
    let agents = "agents:
  - name: closer
    builtin: echo
    skills:
      - name: close
        description: Closes
        effects: [{ domain: board, path: open, delta: -2, confidence: 0.5 }]
";
    std::fs::write(workspace.path().join("agents.yaml"), agents).unwrap();
    let running = Running::of_workspace(data.path(), workspace.path(), |_| {}).await;
    let (_, plan) = running.post("/api/plan", "ann", &goal("down")).await;
    assert_eq!((&plan["candidates"][0]["skill"], &plan["candidates"][0]["score"]), (&json!("close"), &json!(1.0)));
    let (_, card) = running.get("/a2a/closer/.well-known/agent-card.json", "ann").await;
    let extensions = card["capabilities"]["extensions"].as_array().unwrap();
    let declared = extensions.iter().find(|extension| extension["params"]["skills"]["close"].is_object());
    assert_eq!(declared.unwrap()["params"]["skills"]["close"]["effects"][0]["delta"], -2, "{card}");
    running.stop().await;
}
