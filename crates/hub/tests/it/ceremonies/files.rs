//! Files: followed by their content, and gone when they are gone.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{HOUR, MINUTE, after, configure, lines, runs, shown, told, until};
use crate::running::{Running, folder};

const DAILY: &str = "schedule: '0 9 * * *'\ntargets: echo\ncontent: 'daily {{ scheduledAt }}'\n";

async fn server(data: &Path, files: &Path) -> Running {
    Running::of_workspace(data, files, configure).await
}

async fn ids(running: &Running) -> Vec<String> {
    let (_, page) = running.get("/api/ceremonies?all=true", "ann").await;
    page["data"]["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn files_are_followed_by_their_content_and_a_deleted_one_runs_no_more() {
    let (data, files) = (folder(), folder());
    let write = |name: &str, text: &str| std::fs::write(files.path().join("ceremonies").join(name), text).unwrap();
    std::fs::create_dir(files.path().join("ceremonies")).unwrap();
    std::fs::write(files.path().join("agents.yaml"), "agents: [{ name: echo, builtin: echo }]\n").unwrap();
    write("daily.yaml", DAILY);
    write("kept.yaml", &DAILY.replace("9", "8,9,10,11"));
    let running = server(data.path(), files.path()).await;
    let daily = shown(&running, "daily").await;
    assert_eq!((&daily["source"], &daily["createdBy"]), (&json!("file"), &json!("local")));
    // Of the same size.
    write("daily.yaml", &DAILY.replace("0 9", "5 8"));
    let next = until(&running, async || {
        let next = shown(&running, "daily").await["next"][0]["at"].clone();
        (next != daily["next"][0]["at"]).then_some(next)
    })
    .await;
    assert_eq!(next, "2027-01-15T08:05:00.000Z");
    running.clock.turn_to(after(5 * MINUTE));
    let run = runs(&running, "daily", 1).await.remove(0);
    assert_eq!((&run["owner"], &run["title"]), (&json!("local"), &json!("daily 2027-01-15T08:05:00.000Z")));
    // A file that is wrong leaves its ceremony as it is, and says so.
    write("daily.yaml", "schedule: '0 9 * * *'\ntargts: echo\n");
    let refused = lines(&running, "hub.config.refused", 1).await;
    assert!(refused[0]["problem"].as_str().unwrap().contains("targts"), "{refused:?}");
    assert_eq!(shown(&running, "daily").await["schedule"], "5 8 * * *");
    // It belongs to its file.
    for (path, body) in [("update", json!({ "enabled": false })), ("delete", json!({}))] {
        let (status, refusal) = running.post(&format!("/api/ceremonies/daily/{path}"), "ann", &body).await;
        assert_eq!((status, &refusal["code"]), (409, &json!("IN_FILE")), "{refusal}");
    }
    write("daily.yaml", DAILY);
    until(&running, async || (shown(&running, "daily").await["schedule"] == "0 9 * * *").then_some(())).await;
    std::fs::remove_file(files.path().join("ceremonies/daily.yaml")).unwrap();
    until(&running, async || (ids(&running).await == ["kept"]).then_some(())).await;
    running.clock.turn_to(after(HOUR));
    assert_eq!(told(&running, "kept", 1).await, ["2027-01-15T09:00:00.000Z"]);
    let (_, page) = running.get("/api/tasks?via=cron", "ann").await;
    assert_eq!(page["items"].as_array().unwrap().len(), 2, "{page}");
    running.stop().await;
}

#[tokio::test]
async fn what_a_file_has_missed_while_the_server_was_down_is_known_and_a_new_one_has_missed_nothing() {
    let (data, files) = (folder(), folder());
    let write = |name: &str, text: &str| std::fs::write(files.path().join("ceremonies").join(name), text).unwrap();
    std::fs::create_dir(files.path().join("ceremonies")).unwrap();
    std::fs::write(files.path().join("agents.yaml"), "agents: [{ name: echo, builtin: echo }]\n").unwrap();
    write("daily.yaml", DAILY);
    let running = server(data.path(), files.path()).await;
    shown(&running, "daily").await;
    running.stop().await;
    // Three hours later.
    write("new.yaml", DAILY);
    let clock = switchboard_engine::clock::SimulatedClock::at(after(3 * HOUR));
    let running = Running::beside(data.path(), files.path(), Vec::new(), &clock, configure, Default::default()).await;
    assert_eq!(told(&running, "daily", 1).await, ["2027-01-15T09:00:00.000Z"]);
    assert_eq!(shown(&running, "new").await["last"], Value::Null);
    assert_eq!(runs(&running, "new", 0).await.len(), 0);
    running.clock.advance(Duration::from_millis(1));
    running.stop().await;
}
