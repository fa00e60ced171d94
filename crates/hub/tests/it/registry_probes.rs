//! Probes of agents elsewhere, by a simulated clock.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use switchboard_host::config::Config;
use switchboard_host::config::time_span::TimeSpan;

use crate::card_server::CardServer;
use crate::running::{Running, folder};

/// Lets probes happen until an agent is shown as a condition says.
async fn until(running: &Running, condition: impl Fn(&Value) -> bool) -> Value {
    tokio::time::timeout(crate::HANG_GUARD, async {
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
        config.hub.probe.timeout = TimeSpan::from_minutes(1);
    })
    .await
}

/// Half of the second that a probe has, which is what one of two paths gets, and a moment more.
const PATH_TIME: Duration = Duration::from_millis(501);

/// Time stands still, but for a request that hangs: then as much of it passes as that one has. Nothing else can be late,
/// however slow the machine is.
async fn while_time_stands<T>(far: &CardServer, work: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let passes = async {
        // A paused clock moves by itself while all tasks wait; this one never does.
        loop {
            if far.has_new_hanging() {
                tokio::time::advance(PATH_TIME).await;
            }
            assert!(began.elapsed() < crate::HANG_GUARD, "the test hangs");
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        done = work => done,
        () = passes => unreachable!("it has no end"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_finds_no_card_shows_what_both_paths_have_said() {
    let far = CardServer::start(&[]).await;
    while_time_stands(&far, looks_at_both_paths(&far)).await;
}

async fn looks_at_both_paths(far: &CardServer) {
    let files = folder();
    std::fs::write(files.path().join("agents.yaml"), format!("agents: [{{ name: far, url: {} }}]\n", far.url)).unwrap();
    let paths = ["/.well-known/agent-card.json", "/.well-known/agent.json"];
    for silent in paths {
        far.hang_at(silent);
        let data = folder();
        let short = |config: &mut Config| config.hub.probe.timeout = TimeSpan::from_seconds(1);
        let running = Running::of_workspace(data.path(), files.path(), short).await;
        let said = paths.map(|path| match path == silent {
            true => format!("{}{path}: no answer within 0.", far.url),
            false => format!("{}{path}: 403 with", far.url),
        });
        let are_told = |problem: &Value| said.iter().all(|said| problem.as_str().unwrap_or_default().contains(said));
        let shown = until(&running, |shown| are_told(&shown["probe"]["error"])).await;
        let (status, looked) = running.post("/api/a2a/probe", "ann", &json!({ "url": far.url })).await;
        assert_eq!((status, &looked["data"]["reachable"]), (200, &json!(false)), "{looked} after {shown}");
        running.stop().await;
    }
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
async fn the_last_good_card_counts_after_a_restart_that_does_not_reach_the_agent() {
    let (data, files) = (folder(), folder());
    let far = CardServer::start(&["review"]).await;
    let before = running(data.path(), files.path(), &far, "").await;
    until(&before, |shown| skills(shown).len() == 2).await;
    before.stop().await;
    far.fail(true);
    let after = running(data.path(), files.path(), &far, "").await;
    let shown = until(&after, |shown| shown["probe"]["error"].is_string()).await;
    assert_eq!(skills(&shown), ["own", "review"], "{shown}");
    let (status, card) = after.get("/a2a/far/.well-known/agent-card.json", "ann").await;
    assert_eq!((status, &card["capabilities"]["streaming"]), (200, &json!(true)), "{card}");
    after.stop().await;
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
