//! Names of any length from outside: they stop neither the projector nor what it owes.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::{Agent, AgentError, Hosted, Manifest, Settings, Skill, TaskHandle, Turn};
use switchboard_host::config::Config;
use switchboard_host::config::size::Size;
use switchboard_host::config::time_span::TimeSpan;

use crate::card_server::CardServer;
use crate::health::{counted, until};
use crate::running::{Running, START, folder};

/// Fails at its one skill.
struct Failing(String);

impl Agent for Failing {
    fn manifest(&self) -> Manifest {
        Manifest::new("Failing", "Always fails").skill(Skill::new(&self.0, "Failing", "Always fails"))
    }

    async fn run(&self, _: Turn, task: TaskHandle) -> Result<(), AgentError> {
        task.fail("as always").await?;
        Ok(())
    }
}

async fn fail(running: &Running, skill: &str) {
    let message = json!({ "parts": [{ "text": "go" }], "metadata": { "skill": skill } });
    let task = running.send_with("bob", "failing", message, &[]).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED", "{task}");
}

/// Once so many outcomes are counted, what fires.
async fn firing_after(running: &Running, outcomes: u64) -> Vec<Value> {
    let counting = counted(running, outcomes);
    tokio::time::timeout(crate::HANG_GUARD, counting).await.expect("the projector goes on");
    let (_, alerts) = running.get("/api/alerts", "vic").await;
    alerts["items"].as_array().unwrap().iter().filter(|alert| alert["state"] == "firing").cloned().collect()
}

#[tokio::test]
async fn a_skill_with_a_long_id_that_always_fails_is_an_alert_and_stops_nothing() {
    let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
    let skill = "\u{1F400}".repeat(20_000);
    std::fs::write(files.path().join("agents.yaml"), "agents: [{ name: echo, builtin: echo }]\n").unwrap();
    let failing = || vec![Hosted::new("failing", Failing(skill.clone()))];
    let running = Running::of_workspace_beside(data.path(), files.path(), &clock, failing()).await;
    for _ in 0..3 {
        fail(&running, &skill).await;
    }
    let firing = firing_after(&running, 3).await;
    assert_eq!(firing.len(), 1, "it fires once, and does not resolve by its shortened name: {firing:?}");
    let subject = firing[0]["subject"].as_str().unwrap();
    assert_eq!((&firing[0]["alert"], subject.chars().count()), (&json!("skill_orphaned"), "failing/".len() + 128));
    fail(&running, &skill).await;
    assert_eq!(firing_after(&running, 4).await.len(), 1);
    running.stop().await;
    let running = Running::of_workspace_beside(data.path(), files.path(), &clock, failing()).await;
    fail(&running, &skill).await;
    assert_eq!(firing_after(&running, 5).await.len(), 2, "it is stuck by now, too");
    let topics = running.topics("alert.%23", 2).await;
    assert_eq!(topics, ["alert.skill_orphaned.fired", "alert.agent_stuck.fired"]);
    running.stop().await;
}

#[tokio::test]
async fn a_line_that_the_journal_refuses_is_left_out_of_a_page_that_is_written() {
    let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
    std::fs::write(files.path().join("agents.yaml"), "agents: [{ name: echo, builtin: echo }]\n").unwrap();
    // The name of the skill is in the line twice, which makes it longer than this.
    let short = |config: &mut Config| {
        config.hub.projector.flush = TimeSpan::ZERO;
        config.hub.journal.line = Size::from_kibibytes(1);
    };
    let skill = "\u{1F400}".repeat(128);
    let failing = || vec![Hosted::new("failing", Failing(skill.clone()))];
    let running = Running::beside(data.path(), files.path(), failing(), &clock, short, Settings::default()).await;
    for _ in 0..5 {
        fail(&running, &skill).await;
    }
    assert_eq!(firing_after(&running, 5).await.len(), 2, "both fire, whatever the journal says");
    assert_eq!(running.topics("alert.%23", 1).await, ["alert.agent_stuck.fired"]);
    running.stop().await;
    let running = Running::beside(data.path(), files.path(), failing(), &clock, short, Settings::default()).await;
    fail(&running, &skill).await;
    assert_eq!(firing_after(&running, 6).await.len(), 2, "nothing is read again");
    running.stop().await;
}

#[tokio::test]
async fn a_skill_of_a_card_with_a_long_id_is_left_out_and_named_to_administrators() {
    let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
    let (longest, longer) = ("l".repeat(128), format!("m{}", "\n".repeat(128)));
    let far = CardServer::start(&["review", &longest, &longer]).await;
    let agents = format!("agents: [{{ name: far, url: \"{}\" }}]\n", far.url);
    std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    let fetched = until(&running, "/api/agents/far", "ann", |shown| {
        running.clock.advance(Duration::from_secs(1));
        shown["skills"].as_array().is_some_and(|skills| !skills.is_empty())
    });
    let shown = tokio::time::timeout(crate::HANG_GUARD, fetched).await.unwrap();
    let skills: Vec<&str> =
        shown["skills"].as_array().unwrap().iter().map(|skill| skill["id"].as_str().unwrap()).collect();
    assert_eq!(skills, ["review", longest.as_str()]);
    let problems = shown["problems"].as_array().unwrap();
    let problem = problems[0].as_str().unwrap();
    assert!(problems.len() == 1 && problem.contains(r"m\n\n") && problem.len() < 250, "{problem}");
    assert_eq!(running.get("/api/agents/far", "bob").await.1["problems"], Value::Null);
    running.stop().await;
}
