//! Agents that come up a moment after the server in front of them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::card_server::CardServer;
use crate::running::{Running, folder};

/// Longer than the wait between two probes of an agent that has shown no card, which is 18 seconds at most, and shorter
/// than a usual one, which is 48 seconds at least.
const BEFORE_A_USUAL_PROBE: Duration = Duration::from_secs(40);

#[tokio::test]
async fn an_agent_whose_first_probe_has_failed_has_its_skills_before_the_usual_time_of_a_probe() {
    let (data, files) = (folder(), folder());
    let far = CardServer::start(&["review"]).await;
    far.fail(true);
    std::fs::write(files.path().join("agents.yaml"), format!("agents: [{{ name: far, url: {} }}]\n", far.url)).unwrap();
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let until = async |is_shown: &dyn Fn(&Value) -> bool| {
        while !is_shown(&running.get("/api/agents/far", "ann").await.1) {}
    };
    let looked = async {
        until(&|shown: &Value| shown["probe"]["error"].is_string()).await;
        far.fail(false);
        // It passes once, and not while a request is under way: how long that takes here must not count.
        running.clock.advance(BEFORE_A_USUAL_PROBE);
        until(&|shown: &Value| shown["skills"][0]["id"] == json!("review")).await;
    };
    tokio::time::timeout(crate::HANG_GUARD, looked).await.expect("it is probed");
    running.stop().await;
}
