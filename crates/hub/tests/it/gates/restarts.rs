//! What a kill leaves of gates.

use serde_json::json;
use switchboard_engine::{Agent, AgentError, Hosted, Manifest, TaskHandle, Turn, Verdict};

use super::{AGENTS, Gates, state};

/// Gets no further than its decision, like a process that dies right behind its commit.
struct Stalled;

impl Agent for Stalled {
    fn manifest(&self) -> Manifest {
        Manifest::new("Stalled", "Does nothing")
    }

    async fn run(&self, _: Turn, task: TaskHandle) -> Result<(), AgentError> {
        task.canceled().await;
        Ok(())
    }
}

const WITHOUT_OPS: &str = "agents: [{ name: open, builtin: probe }]\n";

#[tokio::test]
async fn a_question_survives_a_kill_and_is_asked_once() {
    let gates = Gates::start().await;
    let id = gates.held("hello", "x").await;
    let gates = gates.killed(AGENTS, Vec::new()).await;
    let task = gates.reach(&id, "AUTH_REQUIRED").await;
    assert!(!task["history"].to_string().contains("of agent ops?"), "it is the same question: {task}");
    gates.decide("oli", &id, Verdict::Approve, "").await.unwrap();
    gates.reach(&id, "COMPLETED").await;
    gates.stop().await;
}

#[tokio::test]
async fn a_skill_that_was_decided_before_a_kill_begins_after_it_and_is_not_asked_about_again() {
    for (verdict, words, artifact) in [(Verdict::Approve, "data", "greeting"), (Verdict::Modify, "data", "data")] {
        let gates = Gates::start().await;
        let id = gates.held("", "hello").await;
        let gates = gates.killed(WITHOUT_OPS, vec![Hosted::new("ops", Stalled)]).await;
        gates.decide("oli", &id, verdict, words).await.unwrap();
        let gates = gates.killed(AGENTS, Vec::new()).await;
        let task = gates.reach(&id, "COMPLETED").await;
        let made = task["artifacts"].as_array().unwrap();
        assert_eq!((&made[0]["name"], made.len()), (&json!(artifact), 1), "{task}");
        assert_eq!(task["metadata"]["switchboard/gate"]["turn"], 1, "{task}");
        assert_eq!(task["history"].to_string().matches("hitl_request").count(), 1, "{task}");
        gates.stop().await;
    }
}

#[tokio::test]
async fn a_skill_that_has_begun_before_a_kill_goes_on_with_what_was_approved() {
    let gates = Gates::start().await;
    let id = gates.held("", "hold").await;
    gates.decide("oli", &id, Verdict::Approve, "hello").await.unwrap();
    let path = format!("/a2a/tasks/{id}");
    gates.until(&path, "bob", |task| task["metadata"]["switchboard/gate"]["turn"] == 1).await;
    let gates = gates.killed(AGENTS, Vec::new()).await;
    let task = gates.reach(&id, "WORKING").await;
    assert_eq!(task["history"].to_string().matches("hitl_request").count(), 1, "{task}");
    let canceled = gates.cancel(&id).await;
    assert_eq!((state(&canceled), &canceled["artifacts"]), ("CANCELED", &json!(null)), "{canceled}");
    gates.stop().await;
}
