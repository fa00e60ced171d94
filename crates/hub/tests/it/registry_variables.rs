//! Agents elsewhere whose secret cannot be read for now: they stay in the roster with what is wrong, and their tasks wait as for
//! an agent that is away.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_engine::Settings;
use switchboard_engine::clock::SimulatedClock;
use switchboard_host::config::Config;

use crate::remote::passing;
use crate::remote::script::{Asked, Reply, Scripted, task};
use crate::running::{Running, START, folder};

/// Are always set here; the last never is.
const SET: &str = "CARGO_PKG_NAME";
const ALSO_SET: &str = "CARGO_PKG_VERSION";
const UNSET: &str = "SWITCHBOARD_TEST_NEVER_SET";
const SECOND: Duration = Duration::from_secs(1);

/// An agent whose tasks end once it is told so; one that was begun with `ask` waits for an answer.
async fn far(has_ended: &Arc<AtomicBool>) -> Scripted {
    let has_ended = Arc::clone(has_ended);
    Scripted::start(true, move |asked, _| {
        let says = |asked: &Asked| asked.body["params"]["message"]["parts"][0]["text"].as_str().map(str::to_owned);
        let named = |id: &str, state: &str| {
            let mut task = task(state, "m");
            task["id"] = id.into();
            task
        };
        match (asked.method(), says(asked).as_deref()) {
            ("SendMessage", Some("ask")) => {
                Reply::Result(json!({ "task": named("asks", "TASK_STATE_INPUT_REQUIRED") }))
            }
            ("SendMessage", Some("answer")) => Reply::Result(json!({ "task": named("asks", "TASK_STATE_COMPLETED") })),
            ("SendMessage", _) => Reply::Result(json!({ "task": named("works", "TASK_STATE_WORKING") })),
            ("GetTask", _) if asked.body["params"]["id"] == "asks" => {
                Reply::Result(named("asks", "TASK_STATE_INPUT_REQUIRED"))
            }
            ("GetTask", _) => Reply::Result(named(
                "works",
                match has_ended.load(Ordering::SeqCst) {
                    true => "TASK_STATE_COMPLETED",
                    false => "TASK_STATE_WORKING",
                },
            )),
            _ => Reply::Error(-32601),
        }
    })
    .await
}

async fn start(data: &Path, files: &Path, clock: &SimulatedClock, listed: &[&str]) -> Running {
    let change = |config: &mut Config| list(config, listed);
    Running::beside(data, files, Vec::new(), clock, change, Settings::default()).await
}

fn list(config: &mut Config, variables: &[&str]) {
    config.hub.registrations.env = variables.iter().map(|&name| name.to_owned()).collect();
}

async fn begin(running: &Running, text: &str, task: Option<&str>) -> String {
    let message = json!({ "messageId": text, "role": "ROLE_USER", "parts": [{ "text": text }], "taskId": task });
    let body = json!({ "message": message, "configuration": { "returnImmediately": true } });
    let (status, answer) = running.post("/a2a/far/message:send", "ann", &body).await;
    assert_eq!(status, 200, "{answer}");
    answer["task"]["id"].as_str().unwrap().to_owned()
}

/// Waits for the state of a task, which also is known to be one elsewhere; time passes.
async fn until_state(running: &Running, id: &str, state: &str) {
    let reached = async {
        loop {
            let (_, task) = running.get(&format!("/a2a/far/tasks/{id}"), "ann").await;
            assert_ne!(task["status"]["state"], "TASK_STATE_FAILED", "{task}");
            if task["status"]["state"] == state && task["metadata"]["switchboard/remote"].is_object() {
                return;
            }
        }
    };
    passing(&running.clock, SECOND, reached).await;
}

async fn problems(running: &Running) -> Value {
    let (status, shown) = running.get("/api/agents/far", "ann").await;
    assert_eq!((status, &shown["served"]), (200, &json!(true)), "{shown}");
    shown["problems"].clone()
}

#[tokio::test]
async fn an_agent_whose_variable_was_taken_off_the_list_stays_and_its_tasks_go_on_once_it_is_listed_again() {
    let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
    let has_ended = Arc::new(AtomicBool::new(false));
    let remote = far(&has_ended).await;
    let running = start(data.path(), files.path(), &clock, &[SET]).await;
    let item = json!({ "name": "far", "url": remote.url(), "bearerEnv": SET });
    let (status, answer) = running.post("/api/agents", "ann", &item).await;
    assert_eq!(status, 201, "{answer}");
    let (works, asks) = (begin(&running, "go", None).await, begin(&running, "ask", None).await);
    until_state(&running, &works, "TASK_STATE_WORKING").await;
    until_state(&running, &asks, "TASK_STATE_INPUT_REQUIRED").await;
    assert_eq!(problems(&running).await, json!([]));
    running.stop().await;

    let asked = remote.calls("GetTask").len();
    let running = start(data.path(), files.path(), &clock, &[]).await;
    let told = problems(&running).await;
    assert!(told[0].as_str().unwrap().contains("list it in hub.registrations.env"), "{told}");
    // The task that works is followed no further for now, and the one that asks takes its answer.
    begin(&running, "answer", Some(&asks)).await;
    running.ask("POST /api/agents/far:refresh", "ann", &[], "").await;
    let (_, page) = running.get("/api/tasks?agent=far&state=failed", "ann").await;
    assert_eq!(page["items"], json!([]), "they wait");
    assert_eq!(remote.calls("GetTask").len(), asked, "nobody is told a secret that is not listed");
    has_ended.store(true, Ordering::SeqCst);
    let mut config = Config::default();
    list(&mut config, &[SET]);
    running.reloads.tell(&config);
    until_state(&running, &works, "TASK_STATE_COMPLETED").await;
    until_state(&running, &asks, "TASK_STATE_COMPLETED").await;
    assert_eq!(problems(&running).await, json!([]));
    running.stop().await;
}

#[tokio::test]
async fn an_agent_whose_variable_is_not_set_after_a_restart_is_waited_for_until_it_is_lost() {
    let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
    let has_ended = Arc::new(AtomicBool::new(false));
    let remote = far(&has_ended).await;
    let naming = |variable: &str| {
        let url = remote.url();
        let agents = format!("agents:\n  - name: far\n    url: {url}\n    bearerEnv: {variable}\n    lostAfter: 30s\n");
        std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    };
    naming(SET);
    let running = start(data.path(), files.path(), &clock, &[]).await;
    let id = begin(&running, "go", None).await;
    until_state(&running, &id, "TASK_STATE_WORKING").await;
    running.stop().await;

    naming(UNSET);
    let running = start(data.path(), files.path(), &clock, &[]).await;
    let told = problems(&running).await;
    assert!(told[0].as_str().unwrap().contains(UNSET), "{told}");
    until_state(&running, &id, "TASK_STATE_WORKING").await;
    running.stop().await;

    naming(SET);
    let running = start(data.path(), files.path(), &clock, &[]).await;
    has_ended.store(true, Ordering::SeqCst);
    until_state(&running, &id, "TASK_STATE_COMPLETED").await;
    has_ended.store(false, Ordering::SeqCst);
    let id = begin(&running, "go", None).await;
    until_state(&running, &id, "TASK_STATE_WORKING").await;
    running.stop().await;

    naming(UNSET);
    let running = start(data.path(), files.path(), &clock, &[]).await;
    let failed = async {
        loop {
            let (_, task) = running.get(&format!("/a2a/far/tasks/{id}"), "ann").await;
            if task["status"]["state"] == "TASK_STATE_FAILED" {
                return task;
            }
        }
    };
    let task = passing(&clock, SECOND, failed).await;
    assert_eq!(task["metadata"]["switchboard/reasonDetail"], "unreachable", "{task}");
    assert!(!task.to_string().contains(UNSET), "names of variables are the operator's: {task}");
    running.stop().await;
}

#[tokio::test]
async fn a_turn_goes_on_with_the_variable_that_it_began_with_and_the_next_one_takes_the_new_one() {
    let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
    let has_ended = Arc::new(AtomicBool::new(false));
    let remote = far(&has_ended).await;
    let naming = |variable: &str| {
        let agents = format!("agents:\n  - name: far\n    url: {}\n    bearerEnv: {variable}\n", remote.url());
        std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    };
    let bearer = |variable: &str| format!("Bearer {}", std::env::var(variable).unwrap());
    let sent = |method: &str| -> Vec<String> {
        remote.calls(method).iter().map(|asked| asked.header("authorization").unwrap().to_owned()).collect()
    };
    naming(SET);
    let running = start(data.path(), files.path(), &clock, &[]).await;
    let works = begin(&running, "go", None).await;
    until_state(&running, &works, "TASK_STATE_WORKING").await;
    naming(ALSO_SET);
    running.reload_now.notify_one();
    running.topics("hub.agent.changed.far", 1).await;
    let before = remote.calls("GetTask").len();
    has_ended.store(true, Ordering::SeqCst);
    until_state(&running, &works, "TASK_STATE_COMPLETED").await;
    let looked = sent("GetTask");
    assert!(looked.len() > before, "it looked again");
    assert_eq!(looked, vec![bearer(SET); looked.len()]);
    let asks = begin(&running, "ask", None).await;
    until_state(&running, &asks, "TASK_STATE_INPUT_REQUIRED").await;
    assert_eq!(sent("SendMessage"), [bearer(SET), bearer(ALSO_SET)]);
    running.stop().await;
}
