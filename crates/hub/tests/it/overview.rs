//! What operators look at first: how things stand, a figure over time, who calls whom, the state of the whole.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::Timestamp;
use switchboard_engine::clock::SimulatedClock;

use crate::health::{counted, server};
use crate::running::{Running, START, folder};

const HOUR: Duration = Duration::from_secs(3_600);

fn acting(text: &str) -> Value {
    json!({ "parts": [{ "text": text }], "metadata": { "skill": "acting" } })
}

/// Outcomes of two hours: three of echo, of which one has failed, and one of other; a question is open.
async fn worked(data: &std::path::Path, clock: &SimulatedClock) -> Running {
    let running = server(data, clock).await;
    running.send_with("bob", "echo", acting("hello"), &[]).await;
    running.send("cat", "echo", "fail").await;
    counted(&running, 2).await;
    clock.advance(HOUR);
    running.send("bob", "echo", "pay 0.5").await;
    running.send("bob", "other", "hello").await;
    running.send("bob", "other", "ask").await;
    counted(&running, 4).await;
    running
}

fn values(series: &Value) -> Vec<Value> {
    series["points"].as_array().unwrap().iter().map(|point| point["value"].clone()).collect()
}

#[tokio::test]
async fn a_series_has_a_point_for_every_step_also_of_what_is_not_in_memory() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = worked(data.path(), &clock).await;
    let begin = START.to_string();
    let path = |rest: &str| format!("/api/series?agent=echo&from={begin}&{rest}");
    assert_eq!(values(&running.get(&path("metric=outcomes"), "vic").await.1), [json!(2), json!(1)]);
    assert_eq!(values(&running.get(&path("metric=successRate"), "vic").await.1), [json!(0.5), json!(1.0)]);
    assert_eq!(values(&running.get(&path("metric=costUsd"), "vic").await.1), [json!(0.0), json!(0.5)]);
    assert_eq!(values(&running.get(&path("metric=outcomes&skill=acting"), "vic").await.1), [json!(1), json!(0)]);
    let (_, minutes) = running.get(&path("metric=failures&step=minute"), "vic").await;
    let minutes = values(&minutes);
    assert_eq!((minutes.len(), &minutes[0], &minutes[60]), (61, &json!(1), &json!(0)));
    // Two days later the windows are empty, and the series is not.
    clock.advance(48 * HOUR);
    let (_, hours) = running.get(&path("metric=outcomes"), "vic").await;
    assert_eq!(
        (values(&hours).len(), &hours["points"][1]),
        (50, &json!({ "at": Timestamp(START.0 + 3_600_000), "value": 1 }))
    );
    let (_, newest) = running.get("/api/series?agent=echo&metric=outcomes", "vic").await;
    let newest = values(&newest);
    assert_eq!((newest.len(), &newest[250], &newest[251]), (300, &json!(2), &json!(1)));
    for (wrong, key) in [
        ("metric=speed&agent=echo", "metric"),
        ("agent=echo", "metric"),
        ("metric=outcomes", "agent"),
        ("metric=outcomes&agent=echo&step=day", "step"),
        ("metric=outcomes&agent=echo&from=yesterday", "from"),
        ("metric=outcomes&agent=echo&from=2099-01-01T00:00:00Z", "from"),
    ] {
        let (status, refusal) = running.get(&format!("/api/series?{wrong}"), "vic").await;
        assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!(key)), "{wrong}: {refusal}");
    }
    assert_eq!(running.get("/api/series?metric=outcomes&agent=other", "eva").await.0, 404, "a key of one agent");
    assert_eq!(running.get("/api/series?metric=outcomes&agent=echo", "bob").await.0, 403, "a key without a role");
    running.stop().await;
}

#[tokio::test]
async fn the_topology_has_an_edge_for_each_caller_of_an_agent() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = worked(data.path(), &clock).await;
    let (_, all) = running.get("/api/topology", "vic").await;
    let node = |kind: &str, name: &str| {
        let id = if kind == "caller" { format!("caller:{name}") } else { format!("agent:{name}") };
        json!({ "id": id, "kind": kind, "name": name })
    };
    let nodes = [node("caller", "bob"), node("caller", "cat"), node("agent", "echo"), node("agent", "other")];
    assert_eq!(all["nodes"], json!(nodes));
    let edge = |from: &str, to: &str, outcomes: u64, errors: u64| {
        let (from, to) = (format!("caller:{from}"), format!("agent:{to}"));
        json!({ "from": from, "to": to, "outcomes": outcomes, "rate": outcomes as f64 / 24.0, "errors": errors })
    };
    let edges = [edge("bob", "echo", 2, 0), edge("bob", "other", 1, 0), edge("cat", "echo", 1, 1)];
    assert_eq!(all["edges"], json!(edges));
    let (_, of_echo) = running.get("/api/topology", "eva").await;
    assert_eq!(of_echo["edges"], json!([edges[0], edges[2]]), "a key of one agent");
    assert!(!of_echo["nodes"].to_string().contains("other"), "{of_echo}");
    assert_eq!(running.get("/api/topology", "bob").await.0, 403);
    running.stop().await;
}

#[tokio::test]
async fn the_overview_shows_each_key_its_part() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = worked(data.path(), &clock).await;
    let (_, all) = running.get("/api/overview", "vic").await;
    assert_eq!(all["live"], json!({ "submitted": 0, "working": 0, "inputRequired": 1, "authRequired": 0 }));
    assert_eq!((&all["ended"]["outcomes"], &all["ended"]["successes"]), (&json!(4), &json!(3)));
    let spark = all["ended"]["spark"].as_array().unwrap();
    let hour = |outcomes: u64, failures: u64| json!({ "outcomes": outcomes, "failures": failures });
    assert_eq!((spark.len(), &spark[21..]), (24, &[hour(0, 0), hour(2, 1), hour(2, 0)][..]));
    assert_eq!((&all["questions"]["open"], &all["questions"]["oldest"][0]["agent"]), (&json!(1), &json!("other")));
    assert_eq!((&all["failed"][0]["agent"], &all["failed"][1]), (&json!("echo"), &Value::Null));
    assert_eq!((&all["alerts"], &all["webhooks"]["behind"]), (&json!([]), &json!(0)));

    let (_, own) = running.get("/api/overview", "bob").await;
    assert_eq!((&own["ended"]["outcomes"], &own["failed"]), (&json!(3), &json!([])), "{own}");
    assert_eq!((&own["questions"]["open"], &own["alerts"], &own["webhooks"]), (&json!(1), &Value::Null, &Value::Null));
    let (_, of_echo) = running.get("/api/overview", "eva").await;
    assert_eq!((&of_echo["ended"]["outcomes"], &of_echo["questions"]["open"]), (&json!(3), &json!(0)), "{of_echo}");
    assert_eq!(of_echo["webhooks"], Value::Null, "deliveries of all agents");
    // Its own fan-outs are its own, whichever agents a key may call.
    let asked = json!({ "message": "ask", "targets": "all", "wait": "30s" });
    let (_, task) = running.post("/api/dispatch", "cat", &asked).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
    assert_eq!(running.get("/api/overview", "cat").await.1["live"]["inputRequired"], 2);
    running.stop().await;
}

#[tokio::test]
async fn the_state_of_the_control_plane_has_agents_health_and_consumers() {
    let (data, workspace) = (folder(), folder());
    std::fs::write(workspace.path().join("agents.yaml"), "agents: [{ name: echo, builtin: echo }]\n").unwrap();
    let running = Running::of_workspace(data.path(), workspace.path(), |_| {}).await;
    let (status, answer) = running.get("/api/control-plane/state", "vic").await;
    let state = &answer["data"];
    assert_eq!((status, &answer["success"], &state["agents"][0]["name"]), (200, &json!(true), &json!("echo")));
    assert_eq!((&state["health"], &state["consumers"][0]["name"]), (&json!([]), &json!("projector")), "{state}");
    assert_eq!((&state["consumers"][0]["lagMs"], &state["collectedAt"]), (&json!(0), &json!(START)));
    let (status, refusal) = running.get("/api/control-plane/state", "bob").await;
    assert_eq!((status, &refusal["success"]), (403, &json!(false)));
    running.stop().await;
}
