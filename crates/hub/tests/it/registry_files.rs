//! The files of agents while a server runs.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_engine::Directory;
use switchboard_fleet::config::agent_files::{AGENTS_VARIABLE, AgentFiles};
use tempfile::TempDir;

use crate::card_server::Nobody;
use crate::running::{Running, folder};

const TWO: &str = "agents:\n  - { name: echo, builtin: echo }\n  - { name: guide, builtin: guide }\n";

/// Whole or not at all: the server reads whenever it likes.
fn write(folder: &Path, file: &str, content: &str) {
    let whole = folder.join("written");
    std::fs::write(&whole, content).unwrap();
    std::fs::rename(whole, folder.join(file)).unwrap();
}

/// An agent `third` in a file of its own.
fn write_third(folder: &Path) {
    std::fs::create_dir(folder.join("agents.d")).unwrap();
    write(folder, "agents.d/more.yaml", "agents: [{ name: third, builtin: echo }]\n");
}

fn workspace(agents: &str) -> TempDir {
    let folder = folder();
    write(folder.path(), "agents.yaml", agents);
    folder
}

async fn roster(running: &Running) -> Value {
    let (status, roster) = running.get("/api/agents", "ann").await;
    assert_eq!(status, 200, "{roster}");
    roster
}

/// Has the files read again and again until the roster is as a condition says, and returns it. Every round is a request, so
/// that the server gets on.
async fn until(running: &Running, condition: impl Fn(&Value) -> bool) -> Value {
    let waited = tokio::time::timeout(crate::HANG_GUARD, async {
        loop {
            running.reload_now.notify_one();
            let roster = roster(running).await;
            if condition(&roster) {
                return roster;
            }
        }
    });
    waited.await.unwrap()
}

/// Has the files read once, and waits until the roster is as a condition says. The clock stands still, so there is no
/// other reading, and none is left over.
async fn read_once(running: &Running, condition: impl Fn(&Value) -> bool) -> Value {
    running.reload_now.notify_one();
    let waited = tokio::time::timeout(crate::HANG_GUARD, async {
        loop {
            let roster = roster(running).await;
            if condition(&roster) {
                return roster;
            }
        }
    });
    waited.await.unwrap()
}

fn names(roster: &Value) -> Vec<&str> {
    roster["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn files_are_followed_while_the_server_runs() {
    let (data, files) = (folder(), workspace(TWO));
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let (_, roster) = running.get("/api/agents", "ann").await;
    assert_eq!(names(&roster), ["echo", "guide"]);
    assert_eq!(running.send("ann", "echo", "hello").await["status"]["state"], "TASK_STATE_COMPLETED");
    let kept = running.registry.find(&"echo".into()).unwrap();

    std::fs::create_dir(files.path().join("agents.d")).unwrap();
    write(files.path(), "agents.d/more.yaml", "agents: [{ name: third, builtin: echo, description: aaa }]\n");
    let roster = until(&running, |roster| names(roster) == ["echo", "guide", "third"]).await;
    assert_eq!((&roster["items"][2]["description"], &roster["items"][2]["source"]), (&json!("aaa"), &json!("file")));
    assert_eq!(running.send("ann", "third", "hello").await["status"]["state"], "TASK_STATE_COMPLETED");

    // The same size, and perhaps the same time.
    let third = running.registry.find(&"third".into()).unwrap();
    write(files.path(), "agents.d/more.yaml", "agents: [{ name: third, builtin: echo, description: bbb }]\n");
    until(&running, |roster| roster["items"][2]["description"] == "bbb").await;
    let swapped = running.registry.find(&"third".into()).unwrap();
    assert!(std::sync::Arc::ptr_eq(&third, &swapped), "name and counters stay over a change");
    assert!(std::sync::Arc::ptr_eq(&kept, &running.registry.find(&"echo".into()).unwrap()));

    write(files.path(), "agents.d/more.yaml", "agents: [{ name: third, builtin: ecco }]\n");
    let roster = until(&running, |roster| !roster["problems"].as_array().unwrap().is_empty()).await;
    assert_eq!(names(&roster), ["echo", "guide", "third"], "a bad file leaves its agents as they are");
    assert!(roster["problems"][0].as_str().unwrap().contains("ecco"), "{roster}");
    assert_eq!(roster["items"][2]["description"], "bbb");
    assert!(roster["items"][2]["problems"][0].as_str().unwrap().contains("ecco"), "{roster}");
    assert_eq!((&roster["items"][0]["problems"], &roster["roles"]["reviewer"]), (&json!([]), &Value::Null));
    assert_eq!(roster["items"][0]["health"]["costUsd24h"], 0.0);
    let (_, page) = running.get("/api/agents?after=fourth&pageSize=1", "ann").await;
    assert_eq!((names(&page), &page["next"]), (vec!["guide"], &json!("guide")), "fourth is not there any more");
    let (_, seen) = running.get("/api/agents", "bob").await;
    assert_eq!(seen["problems"], json!([]), "problems are for administrators");

    std::fs::remove_file(files.path().join("agents.d/more.yaml")).unwrap();
    let roster = until(&running, |roster| names(roster) == ["echo", "guide"]).await;
    assert_eq!(roster["problems"], json!([]));
    let body = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] } });
    assert_eq!(running.post("/a2a/third/message:send", "ann", &body).await.0, 404);

    let topics = running.topics("hub.%23", 4).await;
    let expected =
        ["hub.agent.added.third", "hub.agent.changed.third", "hub.config.refused", "hub.agent.removed.third"];
    assert_eq!(topics, expected);
    running.stop().await;
}

#[tokio::test]
async fn a_file_that_is_being_written_removes_no_agent() {
    let (data, files) = (folder(), workspace(TWO));
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let kept = running.registry.find(&"guide".into()).unwrap();
    std::fs::create_dir(files.path().join("agents.d")).unwrap();
    // Each half of a file is read once, which the next file's agent shows, and then the file is whole again.
    for (round, half) in ["", "agents: [{ name: ec"].into_iter().enumerate() {
        write(files.path(), "agents.yaml", half);
        running.reload_now.notify_one();
        let read = tokio::time::timeout(crate::HANG_GUARD, async {
            while !running.registry.has_unsettled_files() {
                running.get("/api/agents", "ann").await;
            }
        });
        read.await.unwrap();
        write(files.path(), "agents.yaml", TWO);
        let name = format!("more{round}");
        let more = format!("agents: [{{ name: {name}, builtin: echo }}]\n");
        write(files.path(), "agents.d/more.yaml", &more);
        let roster = read_once(&running, |roster| names(roster).len() == 3).await;
        assert_eq!(names(&roster), ["echo", "guide", name.as_str()]);
        std::fs::remove_file(files.path().join("agents.d/more.yaml")).unwrap();
        read_once(&running, |roster| names(roster).len() == 2).await;
    }
    assert!(std::sync::Arc::ptr_eq(&kept, &running.registry.find(&"guide".into()).unwrap()));
    let topics = running.topics("hub.%23", 4).await;
    assert!(topics.iter().all(|topic| topic.contains("more")), "neither removed nor refused: {topics:?}");
    // One that stays empty counts, and so does one that stays broken.
    write(files.path(), "agents.yaml", "agents: [{ name: ec");
    let roster = until(&running, |roster| roster["problems"] != json!([])).await;
    assert_eq!(names(&roster), ["echo", "guide"]);
    write(files.path(), "agents.yaml", "");
    write(files.path(), "agents.d/more.yaml", "agents: [{ name: third, builtin: echo }]\n");
    until(&running, |roster| names(roster) == ["third"]).await;
    running.stop().await;
}

#[tokio::test]
async fn a_file_that_is_moved_for_a_moment_removes_no_agent_and_one_that_is_gone_at_a_reload_does() {
    let (data, files) = (folder(), workspace(TWO));
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let kept = running.registry.find(&"guide".into()).unwrap();
    std::fs::create_dir(files.path().join("agents.d")).unwrap();
    let (file, aside) = (files.path().join("agents.yaml"), files.path().join("aside"));
    std::fs::rename(&file, &aside).unwrap();
    // The time goes on only until the files were read, and it is not certain what they say.
    let read = tokio::time::timeout(crate::HANG_GUARD, async {
        while !running.registry.has_unsettled_files() {
            running.clock.advance(Duration::from_secs(5));
            roster(&running).await;
        }
    });
    read.await.unwrap();
    std::fs::rename(&aside, &file).unwrap();
    write(files.path(), "agents.d/more.yaml", "agents: [{ name: third, builtin: echo }]\n");
    let roster = read_once(&running, |roster| names(roster).len() == 3).await;
    assert_eq!(names(&roster), ["echo", "guide", "third"]);
    assert!(std::sync::Arc::ptr_eq(&kept, &running.registry.find(&"guide".into()).unwrap()));
    assert_eq!(running.topics("hub.%23", 1).await, ["hub.agent.added.third"], "none was removed");

    std::fs::remove_file(files.path().join("agents.d/more.yaml")).unwrap();
    read_once(&running, |roster| names(roster) == ["echo", "guide"]).await;
    running.stop().await;
}

#[tokio::test]
async fn a_changed_adapter_file_is_taken_up_and_a_mended_one_too_though_the_list_of_agents_stays_the_same() {
    let (data, files) = (folder(), folder());
    let describe = |title: &str| {
        let start = "start: { args: [\"--message={prompt}\"] }\noutput: text\n";
        write(files.path(), "own.yaml", &format!("name: own\ntitle: {title}\nbinary: {{ names: [own] }}\n{start}"));
    };
    let agents = "agents:\n  - { name: coder, cli: generic, adapter: own.yaml, permissions: { default: allow } }\n";
    write(files.path(), "agents.yaml", agents);
    describe("First");
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let says = |roster: &Value, title: &str| roster["items"][0]["description"].as_str().unwrap().contains(title);
    assert!(says(&roster(&running).await, "First"));
    let kept = running.registry.find(&"coder".into()).unwrap();

    describe("Second");
    read_once(&running, |roster| says(roster, "Second")).await;
    // One that cannot be leaves the agent as it is, until it is mended.
    write(files.path(), "own.yaml", "name: own\n");
    let roster = read_once(&running, |roster| roster["problems"] != json!([])).await;
    assert!(says(&roster, "Second") && roster["problems"][0].as_str().unwrap().contains("own.yaml"), "{roster}");
    describe("Third");
    let roster = read_once(&running, |roster| says(roster, "Third")).await;
    assert_eq!(roster["problems"], json!([]));
    assert!(std::sync::Arc::ptr_eq(&kept, &running.registry.find(&"coder".into()).unwrap()), "its counters stay");
    running.stop().await;
}

#[tokio::test]
async fn a_folder_that_cannot_be_listed_removes_no_agent() {
    let (data, files) = (folder(), workspace(TWO));
    write_third(files.path());
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    std::fs::rename(files.path().join("agents.d"), files.path().join("aside")).unwrap();
    write(files.path(), "agents.d", "no folder");
    running.reload_now.notify_one();
    let roster = until(&running, |roster| roster["problems"] != json!([])).await;
    assert!(roster["problems"][0].as_str().unwrap().contains("agents.d"), "{roster}");
    assert_eq!(names(&roster), ["echo", "guide", "third"], "{roster}");
    running.stop().await;
}

#[tokio::test]
async fn files_are_read_by_the_clock_too() {
    let (data, files) = (folder(), workspace(TWO));
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    write(files.path(), "agents.yaml", "agents: [{ name: echo, builtin: echo }]\n");
    let followed = tokio::time::timeout(crate::HANG_GUARD, async {
        while running.registry.roster().entries.len() > 1 {
            running.clock.advance(Duration::from_secs(5));
            running.get("/api/agents", "ann").await;
        }
    });
    followed.await.unwrap();
    running.stop().await;
}

#[tokio::test]
async fn a_removed_agent_is_found_until_its_last_task_has_ended() {
    let (data, files) = (folder(), workspace(TWO));
    write_third(files.path());
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let task = running.send("ann", "guide", "hello").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    write(files.path(), "agents.yaml", "agents: [{ name: echo, builtin: echo }]\n");
    std::fs::remove_file(files.path().join("agents.d/more.yaml")).unwrap();
    until(&running, |roster| names(roster) == ["echo"]).await;
    let body = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] } });
    assert_eq!(running.post("/a2a/guide/message:send", "ann", &body).await.0, 404);
    // One without tasks is forgotten by the next look at those that are gone, which are all looked at together.
    let looked = tokio::time::timeout(crate::HANG_GUARD, async {
        while running.registry.find(&"third".into()).is_some() {
            until(&running, |_| true).await;
        }
    });
    looked.await.unwrap();
    assert!(running.registry.find(&"guide".into()).is_some(), "its task still needs it");
    let id = task["id"].as_str().unwrap();
    let (status, now) = running.get(&format!("/a2a/guide/tasks/{id}"), "ann").await;
    assert_eq!((status, &now["id"]), (200, &task["id"]), "it answers for its task: {now}");
    running.engine.cancel_any(&id.into()).await.unwrap();
    let forgotten = tokio::time::timeout(crate::HANG_GUARD, async {
        while running.registry.find(&"guide".into()).is_some() {
            until(&running, |_| true).await;
        }
    });
    forgotten.await.unwrap();
    assert_eq!(running.get(&format!("/a2a/guide/tasks/{id}"), "ann").await.0, 404);
    running.stop().await;
}

#[tokio::test]
async fn keys_that_other_fleets_write_are_taken() {
    let (data, files, nobody) = (folder(), folder(), Nobody::start());
    let agents = format!(
        "agents:\n  - name: far\n    url: {}\n    serve: false\n    subscribesTo: [news.#]\n    \
         discordBotTokenEnvKey: BOT_TOKEN\n    skills: [plan, {{ name: own, description: of ours }}]\n",
        nobody.url()
    );
    write(files.path(), "agents.yaml", &agents);
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let (_, shown) = running.get("/api/agents/far", "bob").await;
    let skills: Vec<&str> =
        shown["skills"].as_array().unwrap().iter().map(|skill| skill["id"].as_str().unwrap()).collect();
    assert_eq!((skills, &shown["subscribesTo"]), (vec!["plan", "own"], &json!(["news.#"])), "{shown}");
    assert_eq!(shown["problems"], Value::Null, "they are for administrators");
    running.stop().await;
}

#[test]
fn agents_of_the_environment_count_in_place_of_files_unless_they_are_malformed() {
    let files = workspace(TWO);
    let names = |json: &str| {
        let variables = [(AGENTS_VARIABLE.to_owned(), json.to_owned()), ("PORT".to_owned(), "9".to_owned())];
        let listing = AgentFiles::new(files.path().to_owned(), variables.into_iter().collect()).read().unwrap();
        listing.entries.iter().map(|entry| entry.name().to_string()).collect::<Vec<_>>()
    };
    let far = r#"{ "agents": [{ "name": "far", "url": "http://127.0.0.1:${PORT}" }] }"#;
    assert_eq!(names(far), ["far"]);
    for malformed in ["{", "[]x", r#"{ "agents": [{ "name": "far" }] }"#, &far.replace("PORT", "NOT_SET"), " "] {
        assert_eq!(names(malformed), ["echo", "guide"], "{malformed}");
    }
}
