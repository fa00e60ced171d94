//! Many tasks of remote agents that wait, while the poll looks at them: messages and children go on beside it, and none of
//! the tasks is in memory for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::{Message, Role, TaskId};
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::store::Store as _;
use switchboard_store::{Durability, SqliteStore};

use crate::remote::passing;
use crate::remote::script::{Reply, Scripted, task};
use crate::remote::waiting::copies;
use crate::running::{Running, START, fanout, folder};

const WAITING: usize = 20_000;
/// Looks that are answered; the others stay open, so that the poll is not over before the test is.
const ANSWERED: usize = 15_000;
/// Tasks in memory: those of the test, and of recovery.
const IN_MEMORY: usize = 20;

/// An agent that asks, and completes what is answered; how often it was looked at.
async fn asking() -> (Scripted, Arc<AtomicUsize>) {
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&looks);
    let mut waiting = task("TASK_STATE_INPUT_REQUIRED", "m");
    waiting["status"]["message"] = serde_json::to_value(Message::text(Role::Agent, "ok?")).unwrap();
    let remote = Scripted::start(false, move |asked, _| match asked.method() {
        "SendMessage" if asked.body["params"]["message"]["taskId"].is_string() => {
            Reply::Result(json!({ "task": task("TASK_STATE_COMPLETED", "m") }))
        }
        "SendMessage" => Reply::Result(json!({ "task": waiting })),
        "GetTask" if counted.fetch_add(1, Ordering::SeqCst) < ANSWERED => Reply::Result(waiting.clone()),
        "GetTask" => Reply::Stalls,
        _ => Reply::Error(-32601),
    });
    (remote.await, looks)
}

fn message(text: &str) -> Value {
    json!({ "messageId": text, "role": "ROLE_USER", "parts": [{ "text": text }] })
}

/// Sends a message and returns its task, which stands so.
async fn sent(running: &Running, path: &str, who: &str, message: &Value, state: &str) -> Value {
    let (status, answer) = running.post(path, who, &json!({ "message": message })).await;
    assert_eq!((status, &answer["task"]["status"]["state"]), (200, &json!(state)), "{answer}");
    assert!(running.engine.tasks_in_memory() <= IN_MEMORY, "{}", running.engine.tasks_in_memory());
    answer["task"].clone()
}

#[tokio::test]
async fn messages_and_children_go_on_while_twenty_thousand_waiting_tasks_are_looked_at() {
    let (remote, looks) = asking().await;
    let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
    let agents = format!("agents:\n  - name: far\n    url: {}\n  - {{ name: near, builtin: echo }}\n", remote.url());
    std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    let (asks, waits) = ("/a2a/far/message:send", "TASK_STATE_INPUT_REQUIRED");
    let running = Running::of_workspace_beside(data.path(), files.path(), &clock, vec![fanout()]).await;
    // All that wait are of one caller, and another one goes on beside them.
    let one = sent(&running, asks, "bob", &message("one"), waits).await;
    running.stop().await;
    let options = switchboard_store::Options { durability: Durability::Process, ..Default::default() };
    let store = SqliteStore::open(data.path(), options).unwrap();
    copies(&store, &TaskId::from(one["id"].as_str().unwrap()), WAITING).await;
    store.close().await.unwrap();
    drop(store);

    let running = Running::of_workspace_beside(data.path(), files.path(), &clock, vec![fanout()]).await;
    let in_memory = || running.engine.tasks_in_memory();
    let begun = async {
        loop {
            let (_, state) = running.get("/api/control-plane/state", "ann").await;
            let consumers = state["data"]["consumers"].as_array().unwrap();
            if consumers.iter().any(|consumer| consumer["name"] == "remote-poll") {
                return;
            }
        }
    };
    tokio::time::timeout(crate::HANG_GUARD, begun).await.expect("the poll begins");
    let before = looks.load(Ordering::SeqCst);
    // An hour later a look is due at each of them, and the poll is under way from here on.
    clock.advance(Duration::from_secs(3_600));
    let looked = async |more: usize| {
        let waited = async {
            let wanted = looks.load(Ordering::SeqCst) + more;
            while looks.load(Ordering::SeqCst) < wanted {
                assert!(in_memory() <= IN_MEMORY, "{}", in_memory());
                tokio::task::yield_now().await;
            }
        };
        passing(&clock, Duration::from_millis(1), waited).await;
    };
    looked(300).await;
    sent(&running, "/a2a/near/message:send", "ann", &message("beside"), "TASK_STATE_COMPLETED").await;
    sent(&running, asks, "ann", &message("another"), waits).await;
    let mut all = message("all");
    all["metadata"] = json!({ "targets": ["near", "far"] });
    let parent = sent(&running, "/message:send", "ann", &all, waits).await;
    let path = format!("/api/tasks/{}/tree", parent["id"].as_str().unwrap());
    let (_, tree) = running.get(&path, "ann").await;
    let children = tree["children"].as_array().unwrap();
    let child = children.iter().find(|child| child["agent"] == "far").unwrap();
    looked(300).await;
    let mut answer = message("yes");
    answer["taskId"] = child["task"].clone();
    sent(&running, asks, "ann", &answer, "TASK_STATE_COMPLETED").await;
    let completed = async {
        while running.get(&path, "ann").await.1["state"] != "completed" {
            assert!(in_memory() <= IN_MEMORY, "{}", in_memory());
        }
    };
    passing(&clock, Duration::from_millis(10), completed).await;
    looked(1).await;
    let looks = looks.load(Ordering::SeqCst) - before;
    assert!((600..WAITING).contains(&looks), "the poll has looked at {looks}, and is not over");
    running.stop().await;
}
