//! Agents of a file that are edited out while no server runs: their tasks go on at the next one, and end as they do elsewhere.

use std::sync::atomic::Ordering;

use serde_json::json;
use switchboard_engine::Directory;
use switchboard_engine::clock::{Clock, SimulatedClock};
use switchboard_engine::store::hub::HubStore;
use switchboard_store::SqliteStore;
use tempfile::TempDir;

use crate::health::left_behind;
use crate::registry_tombstones::{Far, begin, cancel, remotes, until, until_task};
use crate::running::{Running, START, folder};

const ECHO: &str = "  - { name: echo, builtin: echo }\n";

fn write(files: &TempDir, agents: &str) {
    std::fs::write(files.path().join("agents.yaml"), format!("agents:\n{ECHO}{agents}")).unwrap();
}

/// A server that has ended, in order or by `kill -9`, and the folder that it has left.
struct Ended {
    data: TempDir,
    /// What was killed goes on in this process, in a folder of its own; its time stands still from then on.
    killed: Option<(Running, TempDir)>,
}

impl Ended {
    async fn new(running: Running, data: TempDir, is_killed: bool) -> Self {
        if is_killed {
            return Self { data: left_behind(data.path()), killed: Some((running, data)) };
        }
        running.stop().await;
        Self { data, killed: None }
    }
}

#[tokio::test]
async fn tasks_elsewhere_of_an_agent_that_is_edited_out_between_two_starts_end_as_they_do_there() {
    for (is_killed, is_canceled) in [(false, false), (true, false), (false, true), (true, true)] {
        let (data, files, far) = (folder(), folder(), Far::start().await);
        let headers = "headers: { Authorization: Bearer s3cret }";
        write(&files, &format!("  - {{ name: far, url: \"{}\", {headers} }}\n", far.remote.url()));
        let clock = SimulatedClock::at(START);
        let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
        let path = begin(&running).await;
        if is_canceled {
            // The remote agent does not hear of it.
            cancel(&running, &path).await;
        }
        let ended = Ended::new(running, data, is_killed).await;
        write(&files, "");

        let clock = SimulatedClock::at(clock.now());
        let running = Running::of_workspace_at(ended.data.path(), files.path(), &clock).await;
        assert!(running.registry.roster().entry("far").is_none(), "it is gone");
        assert_eq!(remotes(&running), ["far"], "its task still needs it");
        if is_canceled {
            far.hears_of_the_cancellation(&clock).await;
        } else {
            let (_, task) = running.get(&path, "ann").await;
            assert_eq!(task["status"]["state"], "TASK_STATE_WORKING", "{task}");
            far.has_ended.store(true, Ordering::SeqCst);
            until_task(&running, &path, |task| task["status"]["state"] == "TASK_STATE_COMPLETED").await;
            assert_eq!(far.remote.calls("CancelTask").len(), 0);
        }
        until(&running, async || running.registry.find(&"far".into()).is_none() && remotes(&running).is_empty()).await;
        let (_, page) = running.get("/api/feed?from=oldest&topic=remote.%23", "ann").await;
        assert_eq!(page["items"], json!([]), "nothing is left there");
        running.stop().await;
        if let Some((killed, _data)) = ended.killed {
            killed.stop().await;
        }
    }
}

#[tokio::test]
async fn an_agent_of_this_machine_that_is_edited_out_between_two_starts_serves_its_tasks() {
    for is_killed in [false, true] {
        let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
        write(&files, "  - { name: guide, builtin: guide }\n  - { name: idle, builtin: guide }\n");
        let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
        let task = running.send("ann", "guide", "hello").await;
        assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
        let ended = Ended::new(running, data, is_killed).await;
        write(&files, "");

        let clock = SimulatedClock::at(clock.now());
        let running = Running::of_workspace_at(ended.data.path(), files.path(), &clock).await;
        assert!(running.registry.find(&"guide".into()).is_some(), "its task still needs it");
        assert!(running.registry.find(&"idle".into()).is_none(), "it has left nothing behind");
        running.engine.cancel_any(&task["id"].as_str().unwrap().into()).await.unwrap();
        until(&running, async || running.registry.find(&"guide".into()).is_none()).await;
        running.stop().await;
        if let Some((killed, _data)) = ended.killed {
            killed.stop().await;
        }
    }
}

#[tokio::test]
async fn an_agent_that_is_edited_out_and_the_schema_of_its_results_with_it_serves_its_tasks() {
    let (data, files, clock, far) = (folder(), folder(), SimulatedClock::at(START), Far::start().await);
    let schema = files.path().join("count.json");
    std::fs::write(&schema, "{\"type\": \"object\"}").unwrap();
    let skills = "skills: [{ name: count, description: Counts, outputSchema: count.json }]";
    write(&files, &format!("  - {{ name: far, url: \"{}\", {skills} }}\n", far.remote.url()));
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    let path = begin(&running).await;
    running.stop().await;
    write(&files, "");
    std::fs::remove_file(schema).unwrap();

    // First from what the last process has read, then from the tombstone.
    for _ in 0..2 {
        let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
        assert_eq!(remotes(&running), ["far"], "its task still needs it");
        let (_, task) = running.get(&path, "ann").await;
        assert_eq!(task["status"]["state"], "TASK_STATE_WORKING", "{task}");
        running.stop().await;
    }
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    far.has_ended.store(true, Ordering::SeqCst);
    until_task(&running, &path, |task| task["status"]["state"] == "TASK_STATE_COMPLETED").await;
    until(&running, async || remotes(&running).is_empty()).await;
    running.stop().await;
}

#[tokio::test]
async fn what_is_stored_of_the_files_has_no_credentials_and_is_written_on_change_alone() {
    let (data, files) = (folder(), folder());
    let far = |token: &str| {
        let headers = format!("headers: {{ X-Api-Key: {token}, X-Auth: Bearer {token}, X-Team: blue }}");
        format!("  - {{ name: far, url: \"http://127.0.0.1:9\", {headers} }}\n")
    };
    let mut versions = Vec::new();
    for agents in [far("hush"), far("hush"), far("other-hush"), String::new()] {
        write(&files, &agents);
        let running = Running::of_workspace_at(data.path(), files.path(), &SimulatedClock::at(START)).await;
        running.stop().await;
        let store = SqliteStore::open(data.path(), switchboard_store::Options::default()).unwrap();
        let rows = store.registrations("served", "", 9).await.unwrap();
        let row = rows.iter().find(|row| row.name == "definitions").unwrap();
        let body = String::from_utf8(row.body.to_vec()).unwrap();
        assert!(!body.contains("hush"), "{body}");
        for kept in ["http://127.0.0.1:9", "blue"] {
            assert_eq!(body.contains(kept), !agents.is_empty(), "{body}");
        }
        // A tombstone neither.
        for row in store.registrations("agent", "", 9).await.unwrap() {
            let body = String::from_utf8(row.body.to_vec()).unwrap();
            assert!(body.contains("blue") && !body.contains("hush"), "{body}");
        }
        versions.push(row.version);
    }
    assert_eq!(versions, [1, 1, 1, 2], "another token is no change");
}
