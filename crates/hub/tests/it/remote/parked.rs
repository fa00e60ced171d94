//! Kills while a task waits for an answer, or right after it was ended by force; and tasks that end here while they wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::{Message, Role, TaskId, TaskState, Timestamp, Version};
use switchboard_client::{CallContext, Client};
use switchboard_engine::AgentName;
use switchboard_engine::clock::{Clock, SimulatedClock, SystemClock};
use switchboard_hub::remote_poll::{Looked, PollSettings, RemotePoll};

use super::crashes::{ended, texts};
use super::far;
use super::owed::{One, begun, ends};
use super::script::{Reply, Scripted, task};
use super::world::{Running as Front, caller, hub, hub_with_grace, passing, say};
use crate::running::{Running, START, folder};

fn waiting() -> Value {
    let mut waiting = task("TASK_STATE_INPUT_REQUIRED", "m");
    waiting["status"]["message"] = serde_json::to_value(Message::text(Role::Agent, "ok?")).unwrap();
    waiting
}

/// Asks first, and completes once it has an answer or is told to.
async fn asking() -> (Scripted, Arc<AtomicBool>) {
    let is_settled = Arc::new(AtomicBool::new(false));
    let settled = Arc::clone(&is_settled);
    let remote = Scripted::start(false, move |asked, before| match asked.method() {
        "SendMessage" if before == 0 => Reply::Result(json!({ "task": waiting() })),
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_COMPLETED", "m") })),
        "GetTask" if settled.load(Ordering::SeqCst) => Reply::Result(task("TASK_STATE_COMPLETED", "m")),
        "GetTask" => Reply::Result(waiting()),
        "CancelTask" => Reply::Result(task("TASK_STATE_CANCELED", "m")),
        _ => Reply::Error(-32601),
    })
    .await;
    (remote, is_settled)
}

async fn asked(client: &Client) -> TaskId {
    let stream = client.stream(&CallContext::default(), say("go")).await.unwrap();
    let task = stream.finish().await.unwrap().task().unwrap().clone();
    assert_eq!(task.status.state, TaskState::InputRequired);
    task.id
}

fn kill(front: Front) {
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_survives_a_kill_and_its_answer_goes_to_the_same_remote_task() {
    let (remote, _) = asking().await;
    let here = tempfile::tempdir().unwrap();
    let start = || tokio::task::block_in_place(|| hub(here.path(), &remote.url(), |_| {}));
    let front = start();
    let id = asked(&caller(&front, Version::V1)).await;
    kill(front);
    let before = remote.calls("GetTask").len();
    let front = start();
    let client = caller(&front, Version::V1);
    let task = client.get(&CallContext::default(), &id, None).await.unwrap();
    let question = task.status.message.as_ref().map(Message::joined_text);
    assert_eq!((task.status.state, question.as_deref()), (TaskState::InputRequired, Some("ok?")));
    assert_eq!(remote.calls("GetTask").len(), before, "there is nothing to recover");
    let mut answer = say("yes");
    answer.message.task_id = Some(id.clone());
    client.stream(&CallContext::default(), answer).await.unwrap().finish().await.unwrap();
    let task = ended(&client, &id).await;
    assert_eq!((task.status.state, texts(&task)), (TaskState::Completed, vec!["made".to_owned()]));
    let sent = remote.calls("SendMessage");
    assert_eq!((sent.len(), &sent[1].body["params"]["message"]["taskId"]), (2, &json!("r")));
    assert_eq!(ends(&front, &id).await.len(), 1);
    kill(front);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_was_not_looked_at_before_a_kill_is_no_loss() {
    let (remote, is_settled) = asking().await;
    let here = tempfile::tempdir().unwrap();
    let start = || {
        let start = || hub_with_grace(here.path(), &remote.url(), Duration::from_secs(60), |_| {});
        tokio::task::block_in_place(start)
    };
    let (front, parts) = start();
    let now = SystemClock.now();
    let id = asked(&caller(&front, Version::V1)).await;
    // It was told, and the server died of it.
    is_settled.store(true, Ordering::SeqCst);
    drop(parts);
    kill(front);
    let (front, parts) = start();
    let poll = RemotePoll {
        engine: front.engine.clone(),
        store: front.store.clone(),
        remotes: Arc::new(One(parts)),
        settings: PollSettings::default(),
    };
    let agents = vec![AgentName::from("front")];
    poll.look(agents, &mut Looked::until(now), Timestamp(now.0 + 120_000)).await.unwrap();
    let task = ended(&caller(&front, Version::V1), &id).await;
    assert_eq!((task.status.state, texts(&task)), (TaskState::Completed, vec!["made".to_owned()]));
    assert_eq!((remote.calls("SendMessage").len(), ends(&front, &id).await.len()), (1, 1));
    drop(poll);
    kill(front);
}

/// Our server in front of the agent, with a question that waits.
async fn parked(remote: &Scripted, clock: &SimulatedClock, folders: [&std::path::Path; 2]) -> (Running, String) {
    far::write_agents(folders[1], remote);
    let running = Running::of_workspace_at(folders[0], folders[1], clock).await;
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
    let (status, answer) = running.post("/a2a/far/message:send", "ann", &json!({ "message": message })).await;
    assert_eq!((status, &answer["task"]["status"]["state"]), (200, &json!("TASK_STATE_INPUT_REQUIRED")), "{answer}");
    (running, answer["task"]["id"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_remote_task_is_canceled_when_its_question_is_canceled_or_expires() {
    for expires in [false, true] {
        let (remote, _) = asking().await;
        let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
        let (running, id) = parked(&remote, &clock, [data.path(), files.path()]).await;
        let step = if expires { Duration::from_secs(3_600) } else { Duration::from_millis(100) };
        if !expires {
            let head = format!("POST /a2a/far/tasks/{id}:cancel");
            let (status, canceled) = passing(&clock, step, running.ask(&head, "ann", &[], "{}")).await;
            assert_eq!((status, &canceled["status"]["state"]), (200, &json!("TASK_STATE_CANCELED")), "{canceled}");
        }
        passing(&clock, step, remote.called("CancelTask", 1)).await;
        let (_, task) = running.get(&format!("/a2a/far/tasks/{id}"), "ann").await;
        let state = if expires { "TASK_STATE_FAILED" } else { "TASK_STATE_CANCELED" };
        assert_eq!(task["status"]["state"], state, "{task}");
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_task_is_canceled_though_the_server_was_killed_right_after_the_end_here() {
    let is_deaf = Arc::new(AtomicBool::new(true));
    let deaf = Arc::clone(&is_deaf);
    let remote = Scripted::start(false, move |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_WORKING", "m") })),
        "GetTask" => Reply::Result(task("TASK_STATE_WORKING", "m")),
        "CancelTask" if deaf.load(Ordering::SeqCst) => Reply::Stalls,
        "CancelTask" => Reply::Result(task("TASK_STATE_CANCELED", "m")),
        _ => Reply::Error(-32601),
    })
    .await;
    let data = folder();
    let start = || hub_with_grace(data.path(), &remote.url(), Duration::from_millis(20), |_| {}).0;
    let front = tokio::task::block_in_place(start);
    let client = caller(&front, Version::V1);
    let id = begun(&client, "go").await;
    let canceled = client.cancel(&CallContext::default(), &id, None).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    kill(front);
    is_deaf.store(false, Ordering::SeqCst);
    let before = remote.calls("CancelTask").len();
    canceled_by_a_hub(&remote, data.path(), before + 1).await;
}

/// The next process has a hub, which has read nothing of the log.
async fn canceled_by_a_hub(remote: &Scripted, data: &std::path::Path, times: usize) {
    let files = folder();
    let agents = format!("agents:\n  - name: front\n    url: {}\n", remote.url());
    std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    let clock = SimulatedClock::at(SystemClock.now());
    let running = Running::of_workspace_at(data, files.path(), &clock).await;
    passing(&clock, Duration::from_millis(100), remote.called("CancelTask", times)).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_task_is_canceled_when_its_turn_is_given_up_after_many_kills() {
    let remote = Scripted::start(false, move |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_WORKING", "m") })),
        "GetTask" => Reply::Result(task("TASK_STATE_WORKING", "m")),
        "CancelTask" => Reply::Result(task("TASK_STATE_CANCELED", "m")),
        _ => Reply::Error(-32601),
    })
    .await;
    let data = folder();
    let start = || tokio::task::block_in_place(|| hub(data.path(), &remote.url(), |_| {}));
    let mut front = start();
    let id = begun(&caller(&front, Version::V1), "go").await;
    let mut kills = 0;
    let task = loop {
        let before = remote.calls("GetTask").len();
        kill(front);
        kills += 1;
        assert!(kills < 20, "it is given up in the end");
        front = start();
        let client = caller(&front, Version::V1);
        let seen = async {
            loop {
                let task = client.get(&CallContext::default(), &id, None).await.unwrap();
                if task.status.state.is_terminal() || remote.calls("GetTask").len() > before {
                    return task;
                }
            }
        };
        let task = tokio::time::timeout(crate::HANG_GUARD, seen).await.expect("it is resumed or ended");
        if task.status.state.is_terminal() {
            break task;
        }
    };
    assert_eq!((task.status.state, remote.calls("CancelTask").len()), (TaskState::Failed, 0), "{task:?}");
    assert_eq!(remote.calls("SendMessage").len(), 1);
    kill(front);
    canceled_by_a_hub(&remote, data.path(), 1).await;
}
