//! Experiments: each ended task of theirs counts once, also over restarts, and the winner gets what follows.

use serde_json::{Value, json};
use switchboard_engine::AgentName;
use switchboard_engine::clock::SimulatedClock;
use switchboard_hub::routing::rendezvous;

use crate::health::{server, until};
use crate::running::{Running, START, folder};

/// The agent that gets half of the conversations and this one.
fn arm_of(context: &str) -> String {
    let arms = ["echo", "other"].map(AgentName::from);
    rendezvous::pick(context, arms.iter().map(|arm| (arm, 1.0))).unwrap().0.to_string()
}

/// Conversations that the hash gives to an agent.
fn contexts(agent: &str, prefix: &str, count: usize) -> Vec<String> {
    (0..).map(|number| format!("{prefix}{number}")).filter(|context| arm_of(context) == agent).take(count).collect()
}

/// Begins a conversation at the root; how it was routed.
async fn routed(running: &Running, context: &str, text: &str, hints: Value) -> Value {
    let message = json!({
        "messageId": context, "contextId": context, "role": "ROLE_USER", "parts": [{ "text": text }], "metadata": hints,
    });
    let (status, answer) = running.post("/a2a/message:send", "bob", &json!({ "message": message })).await;
    assert_eq!(status, 200, "{answer}");
    answer["task"]["metadata"]["switchboard/routing"].clone()
}

async fn send_all(running: &Running, skill: &str, contexts: &[String], text: &str) {
    for context in contexts {
        let decision = routed(running, context, text, json!({ "skill": skill })).await;
        assert_eq!(
            (&decision["by"], &decision["agent"]),
            (&json!("experiment"), &json!(arm_of(context))),
            "{decision}"
        );
    }
}

/// The experiments once they are as wanted.
async fn shown(running: &Running, wanted: impl Fn(&Value) -> bool) -> Value {
    let answer = until(running, "/api/experiments", "ann", |answer| wanted(&answer["items"][0])).await;
    answer["items"][0].clone()
}

fn outcomes(experiment: &Value) -> [u64; 2] {
    ["control", "challenger"].map(|arm| experiment["counts"][arm]["outcomes"].as_u64().unwrap())
}

fn definition(skill: &str, n: u64) -> Value {
    json!({ "skill": skill, "control": "echo", "challenger": "other", "n": n })
}

#[tokio::test]
async fn an_experiment_counts_its_tasks_once_over_restarts_and_its_winner_gets_the_rest() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = server(data.path(), &clock).await;
    routed(&running, "before", "hello", json!({ "skill": "acting" })).await;
    let begin = definition("acting", 7).to_string();
    let id = ["X-Request-Id: begin-1"];
    let (status, begun) = running.ask("POST /api/experiments", "ann", &id, &begin).await;
    assert_eq!((status, &begun["state"], &begun["owner"]), (201, &json!("running"), &json!("ann")), "{begun}");
    let (status, refusal) = running.ask("POST /api/experiments", "ann", &[], &begin).await;
    assert_eq!((status, &refusal["code"]), (409, &json!("EXISTS")));

    // An agent that fails all the time gets its half all the same: else it could never lose.
    send_all(&running, "acting", &contexts("echo", "a", 7), "fail").await;
    send_all(&running, "acting", &contexts("other", "a", 5), "hello").await;
    // What the experiment has not given to its agent says nothing about it.
    routed(&running, "named", "fail", json!({ "skill": "acting", "targets": "other" })).await;
    routed(&running, &contexts("other", "a", 1)[0], "fail", json!({ "skill": "acting" })).await;
    let direct = json!({ "parts": [{ "text": "fail" }], "metadata": { "skill": "acting" } });
    running.send_with("bob", "other", direct, &[]).await;
    let experiment = shown(&running, |experiment| outcomes(experiment) == [7, 5]).await;
    assert_eq!((&experiment["state"], &experiment["winner"]), (&json!("running"), &Value::Null));
    running.stop().await;

    let running = server(data.path(), &clock).await;
    send_all(&running, "acting", &contexts("other", "b", 2), "hello").await;
    let resolved = shown(&running, |experiment| experiment["state"] == "resolved").await;
    assert_eq!((outcomes(&resolved), &resolved["winner"]), ([7, 7], &json!("other")), "{resolved}");
    assert_eq!((&resolved["by"], &resolved["counts"]["control"]["successes"]), (&json!("success"), &json!(0)));
    running.stop().await;

    let running = server(data.path(), &clock).await;
    for context in contexts("echo", "c", 3) {
        let decision = routed(&running, &context, "hello", json!({ "skill": "acting" })).await;
        let of_winner = (&json!("experiment"), &json!("other"));
        assert_eq!((&decision["by"], &decision["agent"]), of_winner, "{decision}");
    }
    let (_, ended) = running.get("/api/health?skill=acting", "vic").await;
    assert!(ended["totals"]["outcomes"].as_u64().unwrap() >= 16, "{ended}");
    assert_eq!(running.get("/api/experiments", "ann").await.1["items"], json!([resolved]), "nothing counts any more");
    let lines = running.topics("hub.experiment.%23", 1).await;
    assert_eq!(lines, ["hub.experiment.resolved.acting"], "once, whatever process reads it");

    // An admin of some agents decides nothing about how the others are chosen.
    assert_eq!(running.get("/api/experiments", "ada").await.0, 403);
    assert_eq!(running.ask("DELETE /api/experiments/acting", "ada", &[], "").await.0, 403);
    assert_eq!(running.ask("DELETE /api/experiments/acting", "ann", &[], "").await.0, 204);
    let decision = routed(&running, "after", "hello", json!({ "skill": "acting" })).await;
    assert_eq!(decision["by"], "skill");
    assert_eq!(running.ask("POST /api/experiments", "ann", &[], &begin).await.0, 201);
    let anew = shown(&running, |experiment| experiment["state"] == "running").await;
    assert_eq!(outcomes(&anew), [0, 0]);
    let (_, page) = running.get("/api/feed?from=oldest&topic=audit.experiments.%23", "ann").await;
    let acts: Vec<_> = page["items"].as_array().unwrap().iter().map(|item| item["topic"].as_str().unwrap()).collect();
    assert_eq!(acts, ["audit.experiments.add", "audit.experiments.remove", "audit.experiments.add"]);
    let first = &page["items"][0]["payload"];
    assert_eq!((&first["caller"], &first["requestId"]), (&json!("ann"), &json!("begin-1")), "{first}");
    assert_eq!((&first["before"], &first["after"]), (&Value::Null, &definition("acting", 7)));
    running.stop().await;
}

#[tokio::test]
async fn agents_that_succeed_alike_are_told_apart_by_their_tokens() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = server(data.path(), &clock).await;
    assert_eq!(running.post("/api/experiments", "ann", &definition("moving", 3)).await.0, 201);
    send_all(&running, "moving", &contexts("echo", "a", 3), "spend").await;
    send_all(&running, "moving", &contexts("other", "a", 3), "pay 0.5").await;
    let resolved = shown(&running, |experiment| experiment["state"] == "resolved").await;
    assert_eq!((&resolved["winner"], &resolved["by"]), (&json!("other"), &json!("tokens")), "{resolved}");
    assert_eq!(resolved["counts"]["control"], json!({ "outcomes": 3, "successes": 3, "tokens": 3_300 }));
    running.stop().await;
}

#[tokio::test]
async fn what_cannot_be_compared_is_refused() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let refused = async |change: Value, key: &str| {
        let mut body = definition("acting", 5);
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let (status, refusal) = running.post("/api/experiments", "ann", &body).await;
        let keys: Vec<_> =
            refusal["problems"].as_array().unwrap().iter().map(|problem| problem["key"].clone()).collect();
        assert_eq!((status, keys), (400, vec![json!(key)]), "{refusal}");
    };
    refused(json!({ "challenger": "nobody" }), "challenger").await;
    refused(json!({ "challenger": "echo" }), "challenger").await;
    refused(json!({ "control": "~fanout" }), "control").await;
    refused(json!({ "n": 0 }), "n").await;
    refused(json!({ "n": 1_000_001 }), "n").await;
    let (status, refusal) = running.post("/api/experiments", "ann", &definition("dancing", 5)).await;
    assert_eq!((status, refusal["problems"].as_array().unwrap().len()), (400, 2), "neither has it: {refusal}");
    assert_eq!(running.post("/api/experiments", "ada", &definition("acting", 5)).await.0, 403);
    assert_eq!(running.post("/api/experiments", "oli", &definition("acting", 5)).await.0, 403);
    running.stop().await;
}
