//! Agents that come up a moment after the server in front of them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::card_server::CardServer;
use crate::running::{Running, folder};

/// The most that the wait between two probes of an agent that is away takes, and the requests of a slow machine.
const MOST_STEPS: usize = 40;

#[tokio::test]
async fn an_agent_whose_first_probe_has_failed_has_its_skills_before_the_usual_time_of_a_probe() {
    let (data, files) = (folder(), folder());
    let far = CardServer::start(&["review"]).await;
    far.fail(true);
    std::fs::write(files.path().join("agents.yaml"), format!("agents: [{{ name: far, url: {} }}]\n", far.url)).unwrap();
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let until = async |is_shown: &dyn Fn(&Value) -> bool, step: Duration| {
        let mut steps = 0;
        loop {
            let (_, shown) = running.get("/api/agents/far", "ann").await;
            if is_shown(&shown) {
                return steps;
            }
            running.clock.advance(step);
            steps += 1;
        }
    };
    let looked = async {
        until(&|shown: &Value| shown["probe"]["error"].is_string(), Duration::ZERO).await;
        far.fail(false);
        // A usual probe would come after 48 seconds at the earliest.
        until(&|shown: &Value| shown["skills"][0]["id"] == json!("review"), Duration::from_secs(1)).await
    };
    let steps = tokio::time::timeout(crate::HANG_GUARD, looked).await.expect("it is probed");
    assert!(steps <= MOST_STEPS, "after {steps} s");
    running.stop().await;
}
