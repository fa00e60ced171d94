//! Agents that are gone while tasks or jobs name them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::{Directory, Settings};
use switchboard_host::config::Config;
use switchboard_host::config::time_span::TimeSpan;
use tempfile::TempDir;

use crate::card_server::{CardServer, Nobody};
use crate::remote::passing;
use crate::remote::script::{Reply, Scripted, task};
use crate::running::{Running, START, folder};

const ECHO: &str = "  - { name: echo, builtin: echo }\n";

/// Has the files read until something is so; the clock goes on meanwhile.
pub(crate) async fn until(running: &Running, condition: impl AsyncFn() -> bool) {
    let waited = tokio::time::timeout(crate::HANG_GUARD, async {
        while !condition().await {
            running.reload_now.notify_one();
            running.clock.advance(Duration::from_secs(1));
            running.get("/api/agents", "ann").await;
        }
    });
    waited.await.unwrap();
}

#[tokio::test]
async fn an_agent_that_the_files_drop_serves_its_tasks_over_a_restart() {
    let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
    let write = |agents: &str| std::fs::write(files.path().join("agents.yaml"), format!("agents:\n{agents}")).unwrap();
    write(&format!("{ECHO}  - {{ name: guide, builtin: guide }}\n"));
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    let task = running.send("ann", "guide", "hello").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    write(ECHO);
    until(&running, async || running.registry.roster().entry("guide").is_none()).await;
    running.stop().await;

    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    assert!(running.registry.find(&"guide".into()).is_some(), "its task still needs it");
    assert_eq!(running.get("/api/agents/guide", "ann").await.0, 404, "but it is gone");
    let (_, live) = running.get("/api/tasks?agent=guide&state=input_required", "ann").await;
    assert_eq!(live["items"].as_array().unwrap().len(), 1, "{live}");
    running.engine.cancel_any(&task["id"].as_str().unwrap().into()).await.unwrap();
    until(&running, async || running.registry.find(&"guide".into()).is_none()).await;
    running.stop().await;
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    assert!(running.registry.find(&"guide".into()).is_none(), "nothing names it any more");
    running.stop().await;
}

#[tokio::test]
async fn another_address_under_the_name_of_a_removed_agent_has_not_its_skills() {
    let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
    std::fs::write(files.path().join("agents.yaml"), format!("agents:\n{ECHO}")).unwrap();
    let far = CardServer::start(&["review"]).await;
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    let item = json!({ "name": "far", "url": far.url });
    assert_eq!(running.post("/api/agents", "ann", &item).await.0, 201);
    let long = json!({ "name": "far", "url": far.url, "description": "é".repeat(40_000) });
    let (status, answer) = running.ask("PUT /api/agents/far", "ann", &[], &long.to_string()).await;
    assert_eq!(status, 200, "the audit does not repeat all of it: {answer}");
    assert_eq!(running.ask("DELETE /api/agents/far", "ann", &[], "").await.0, 204);
    running.stop().await;

    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    let nobody = Nobody::start();
    let item = json!({ "name": "far", "url": nobody.url() });
    let (status, answer) = running.post("/api/agents?force=true", "ann", &item).await;
    assert_eq!(status, 201, "{answer}");
    let (_, shown) = running.get("/api/agents/far", "ann").await;
    assert_eq!(shown["skills"], json!([]), "{shown}");
    running.stop().await;
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    let (_, shown) = running.get("/api/agents/far", "ann").await;
    assert_eq!((&shown["source"], &shown["skills"]), (&json!("registration"), &json!([])), "{shown}");
    running.stop().await;
}

const STEP: Duration = Duration::from_millis(100);

/// A remote agent whose task ends when it is told to, and that does not listen to cancellations while it is deaf.
pub(crate) struct Far {
    pub(crate) remote: Scripted,
    pub(crate) has_ended: Arc<AtomicBool>,
    is_deaf: Arc<AtomicBool>,
}

impl Far {
    pub(crate) async fn start() -> Self {
        let (has_ended, is_deaf) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(true)));
        let (ended, deaf) = (Arc::clone(&has_ended), Arc::clone(&is_deaf));
        let remote = Scripted::start(false, move |asked, _| match asked.method() {
            "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_WORKING", "m") })),
            "GetTask" if ended.load(Ordering::SeqCst) => Reply::Result(task("TASK_STATE_COMPLETED", "m")),
            "GetTask" => Reply::Result(task("TASK_STATE_WORKING", "m")),
            "CancelTask" if deaf.load(Ordering::SeqCst) => Reply::Closes,
            "CancelTask" => Reply::Result(task("TASK_STATE_CANCELED", "m")),
            _ => Reply::Error(-32601),
        })
        .await;
        Self { remote, has_ended, is_deaf }
    }

    /// It listens from now on, and hears that its task is canceled.
    pub(crate) async fn hears_of_the_cancellation(&self, clock: &SimulatedClock) {
        let before = self.remote.calls("CancelTask").len();
        self.is_deaf.store(false, Ordering::SeqCst);
        passing(clock, STEP, self.remote.called("CancelTask", before + 1)).await;
    }
}

/// Begins a task at `far`, and returns its path once the remote task is known.
pub(crate) async fn begin(running: &Running) -> String {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
    let body = json!({ "message": message, "configuration": { "returnImmediately": true } });
    let (status, answer) = running.post("/a2a/far/message:send", "ann", &body).await;
    assert_eq!(status, 200, "{answer}");
    let path = format!("/tasks/{}", answer["task"]["id"].as_str().unwrap());
    until_task(running, &path, |task| task["metadata"]["switchboard/remote"].is_object()).await;
    path
}

pub(crate) async fn until_task(running: &Running, path: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let read = async {
        loop {
            let (_, task) = running.get(path, "ann").await;
            if fits(&task) {
                return task;
            }
        }
    };
    passing(&running.clock, STEP, read).await
}

pub(crate) async fn cancel(running: &Running, path: &str) {
    let head = format!("POST {path}:cancel");
    let (status, canceled) = passing(&running.clock, STEP, running.ask(&head, "ann", &[], "{}")).await;
    assert_eq!((status, &canceled["status"]["state"]), (200, &json!("TASK_STATE_CANCELED")), "{canceled}");
}

pub(crate) fn remotes(running: &Running) -> Vec<String> {
    running.registry.roster().remotes().iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn what_an_agent_has_left_elsewhere_is_canceled_though_its_name_is_an_agents_of_this_machine_now() {
    for (is_registered, restarts) in [(false, false), (false, true), (true, true)] {
        let (data, files, clock, far) = (folder(), folder(), SimulatedClock::at(START), Far::start().await);
        let write = |agents: &str| {
            std::fs::write(files.path().join("agents.yaml"), format!("agents:\n{ECHO}{agents}")).unwrap()
        };
        let elsewhere = format!("  - {{ name: far, url: \"{}\" }}\n", far.remote.url());
        write(if is_registered { "" } else { &elsewhere });
        let mut running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
        if is_registered {
            let item = json!({ "name": "far", "url": far.remote.url() });
            assert_eq!(running.post("/api/agents", "ann", &item).await.0, 201);
        }
        let path = begin(&running).await;
        write("  - { name: far, builtin: echo }\n");
        let is_here = async || running.registry.roster().entry("far").is_some_and(|entry| entry.remote.is_none());
        until(&running, is_here).await;
        if restarts {
            // The agent that has the name now cannot go on with the task, which fails.
            running.stop().await;
            running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
        } else {
            cancel(&running, &path).await;
        }
        far.hears_of_the_cancellation(&clock).await;
        until_task(&running, &path, |task| task["status"]["state"] != "TASK_STATE_WORKING").await;
        until(&running, async || remotes(&running).is_empty()).await;
        let (_, page) = running.get("/api/feed?from=oldest&topic=remote.%23", "ann").await;
        assert_eq!(page["items"], json!([]), "nothing is left there");
        running.stop().await;
    }
}

#[tokio::test]
async fn a_removed_agent_is_busy_and_then_stays_until_nothing_is_owed_to_it() {
    for is_owed in [false, true] {
        let (data, files, clock, far) = (folder(), folder(), SimulatedClock::at(START), Far::start().await);
        std::fs::write(files.path().join("agents.yaml"), format!("agents:\n{ECHO}")).unwrap();
        let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
        let item = json!({ "name": "far", "url": far.remote.url() });
        assert_eq!(running.post("/api/agents", "ann", &item).await.0, 201);
        let path = begin(&running).await;
        let (status, refusal) = running.ask("DELETE /api/agents/far", "ann", &[], "").await;
        assert_eq!((status, &refusal["code"], &refusal["live"]), (409, &json!("BUSY"), &json!(1)), "{refusal}");
        assert_eq!(running.ask("DELETE /api/agents/far?force=true", "ann", &[], "").await.0, 204);
        let message = json!({ "messageId": "n", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
        let sent = json!({ "message": message });
        assert_eq!(running.post("/a2a/far/message:send", "ann", &sent).await.0, 404, "it takes nothing new");
        running.stop().await;

        let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
        assert!(running.registry.roster().entry("far").is_none());
        assert_eq!(remotes(&running), ["far"], "its task still needs it");
        if is_owed {
            // Its own turn asks while the cancellation has time, and the job after that.
            cancel(&running, &path).await;
            let asked = far.remote.calls("CancelTask").len();
            until(&running, async || far.remote.calls("CancelTask").len() >= asked + 2).await;
            assert_eq!(remotes(&running), ["far"], "it has no task any more, and a job needs it");
            far.hears_of_the_cancellation(&clock).await;
        } else {
            far.has_ended.store(true, Ordering::SeqCst);
            until_task(&running, &path, |task| task["status"]["state"] == "TASK_STATE_COMPLETED").await;
        }
        until(&running, async || running.registry.find(&"far".into()).is_none() && remotes(&running).is_empty()).await;
        running.stop().await;
        let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
        assert_eq!(remotes(&running), [] as [&str; 0], "no tombstone is left");
        running.stop().await;
    }
}

/// A server whose registrations may name these variables.
async fn naming(data: &TempDir, files: &TempDir, clock: &SimulatedClock, variables: &[&str]) -> Running {
    let settings = Settings { feed_ring_bytes: 0, cancel_grace: Duration::from_secs(1), ..Settings::default() };
    let change = |config: &mut Config| {
        config.hub.projector.flush = TimeSpan::ZERO;
        config.hub.registrations.env = variables.iter().map(|&name| name.to_owned()).collect();
    };
    Running::beside(data.path(), files.path(), Vec::new(), clock, change, settings).await
}

#[tokio::test]
async fn what_is_owed_to_an_agent_that_cannot_be_served_at_one_start_is_done_after_the_next() {
    const VARIABLE: &str = "CARGO_PKG_NAME";
    let (data, files, clock, far) = (folder(), folder(), SimulatedClock::at(START), Far::start().await);
    std::fs::write(files.path().join("agents.yaml"), format!("agents:\n{ECHO}")).unwrap();
    let running = naming(&data, &files, &clock, &[VARIABLE]).await;
    let item = json!({ "name": "far", "url": far.remote.url(), "bearerEnv": VARIABLE });
    let (status, answer) = running.post("/api/agents", "ann", &item).await;
    assert_eq!(status, 201, "{answer}");
    begin(&running).await;
    assert_eq!(running.ask("DELETE /api/agents/far?force=true", "ann", &[], "").await.0, 204);
    running.stop().await;

    let running = naming(&data, &files, &clock, &[]).await;
    assert_eq!(remotes(&running), ["far"], "its task waits for its variable");
    let asked = far.remote.calls("CancelTask").len();
    let (_, page) = running.get("/api/tasks?agent=far", "ann").await;
    let id = page["items"][0]["taskId"].as_str().unwrap().to_owned();
    cancel(&running, &format!("/a2a/far/tasks/{id}")).await;
    // It is looked often whether anything names it.
    for _ in 0..30 {
        running.reload_now.notify_one();
        running.clock.advance(Duration::from_secs(1));
        running.get("/api/agents", "ann").await;
    }
    assert_eq!(far.remote.calls("CancelTask").len(), asked, "nobody is told a secret that is not listed");
    running.stop().await;

    let running = naming(&data, &files, &clock, &[VARIABLE]).await;
    assert_eq!(remotes(&running), ["far"], "a job still needs it");
    far.hears_of_the_cancellation(&clock).await;
    until(&running, async || remotes(&running).is_empty()).await;
    let (_, page) = running.get("/api/feed?from=oldest&topic=remote.%23", "ann").await;
    assert_eq!(page["items"], json!([]), "nothing is left there");
    running.stop().await;
}
