//! `kill -9` of our server at each state of a remote task: the message is executed once, or the task says that this is
//! not known; what was told is not told again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use switchboard_a2a::{StreamResponse, Task, TaskId, TaskState, Version};
use switchboard_client::{CallContext, Client, Update};
use switchboard_hub::remote::Resend;

use super::lost::push;
use super::script::{Reply, Scripted, task};
use super::world::{Worker, caller, hub, say, worker};

pub(super) async fn begin(client: &Client, text: &str) -> TaskId {
    let mut stream = client.stream(&CallContext::default(), say(text)).await.unwrap();
    stream.next().await.unwrap();
    stream.task_id().unwrap()
}

pub(super) async fn ended(client: &Client, id: &TaskId) -> Task {
    let ended = async {
        loop {
            let task = client.get(&CallContext::default(), id, None).await.unwrap();
            if task.status.state.is_terminal() {
                return task;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::HANG_GUARD, ended).await.expect("it ends")
}

pub(super) fn texts(task: &Task) -> Vec<String> {
    let parts =
        |artifact: &switchboard_a2a::Artifact| artifact.parts.iter().filter_map(|part| part.as_text()).collect();
    task.artifacts.iter().map(parts).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_followed_task_is_resumed_and_nothing_is_told_twice() {
    let (there, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let agent = Worker::new();
    let remote = tokio::task::block_in_place(|| worker(there.path(), &agent));
    let url = remote.url("worker");
    // Whether the remote agent ends while our server is down, or after it is back.
    for ends_meanwhile in [true, false] {
        let front = tokio::task::block_in_place(|| hub(here.path(), &url, |_| {}));
        let client = caller(&front, Version::V1);
        let mut stream = client.stream(&CallContext::default(), say("go")).await.unwrap();
        let told = async {
            while let Some(update) = stream.next().await.unwrap() {
                let Update::Event(event) = update else { continue };
                if matches!(*event, StreamResponse::ArtifactUpdate(_)) {
                    break;
                }
            }
        };
        tokio::time::timeout(crate::HANG_GUARD, told).await.expect("it begins");
        let id = stream.task_id().unwrap();
        drop(stream);
        tokio::task::block_in_place(|| front.kill());
        if ends_meanwhile {
            agent.gate.add_permits(1);
        }
        let front = tokio::task::block_in_place(|| hub(here.path(), &url, |_| {}));
        if !ends_meanwhile {
            agent.gate.add_permits(1);
        }
        let task = ended(&caller(&front, Version::V1), &id).await;
        assert_eq!((task.status.state, texts(&task)), (TaskState::Completed, vec!["one two".to_owned()]));
        let said = task.history.iter().filter(|message| message.joined_text() == "at it").count();
        assert_eq!(said, 1, "{:?}", task.history);
        tokio::task::block_in_place(|| front.kill());
    }
    assert_eq!(agent.runs.load(Ordering::SeqCst), 2, "each message was executed once");
    tokio::task::block_in_place(|| remote.kill());
}

/// The server is killed while it sends, and comes back.
async fn killed_while_sending(idempotent: bool, resend: Resend, is_listed: bool) -> (Task, Scripted) {
    let here = tempfile::tempdir().unwrap();
    let is_back = Arc::new(AtomicBool::new(false));
    let is_back_there = Arc::clone(&is_back);
    let message_id = Arc::new(parking_lot::Mutex::new(String::new()));
    let remote = Scripted::start(idempotent, move |asked, _| {
        let id = asked.body["params"]["message"]["messageId"].as_str().map(str::to_owned);
        if let Some(id) = id {
            *message_id.lock() = id;
        }
        let now = task("TASK_STATE_COMPLETED", &message_id.lock());
        match asked.method() {
            "SendMessage" if !is_back_there.load(Ordering::SeqCst) => Reply::Stalls,
            "SendMessage" => Reply::Result(serde_json::json!({ "task": now })),
            "ListTasks" => {
                let tasks = if is_listed { vec![now] } else { Vec::new() };
                Reply::Result(serde_json::json!({
                    "tasks": tasks, "nextPageToken": "", "pageSize": 50, "totalSize": 1,
                }))
            }
            "GetTask" => Reply::Result(now),
            "SubscribeToTask" => Reply::Error(-32004),
            _ => Reply::Closes,
        }
    })
    .await;
    let url = remote.url();
    let front = tokio::task::block_in_place(|| hub(here.path(), &url, |parts| parts.settings.resend = resend));
    let id = begin(&caller(&front, Version::V1), "go").await;
    remote.called("SendMessage", 1).await;
    tokio::task::block_in_place(|| front.kill());
    is_back.store(true, Ordering::SeqCst);
    let front = tokio::task::block_in_place(|| hub(here.path(), &url, |parts| parts.settings.resend = resend));
    let task = ended(&caller(&front, Version::V1), &id).await;
    tokio::task::block_in_place(|| front.kill());
    (task, remote)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_was_perhaps_sent_is_executed_once_or_that_is_said() {
    // An agent that recognises repetitions gets the same bytes under the same key.
    let (task, remote) = killed_while_sending(true, Resend::Safe, false).await;
    assert_eq!((task.status.state, texts(&task)), (TaskState::Completed, vec!["made".to_owned()]));
    let sent = remote.calls("SendMessage");
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0].header("idempotency-key"), sent[1].header("idempotency-key"));
    assert_eq!(sent[0].body["params"], sent[1].body["params"], "a repetition is the same bytes");
    // One that does not is asked for a task with the message.
    let (task, remote) = killed_while_sending(false, Resend::Safe, true).await;
    assert_eq!((task.status.state, texts(&task)), (TaskState::Completed, vec!["made".to_owned()]));
    assert_eq!((remote.calls("SendMessage").len(), remote.calls("ListTasks").len()), (1, 1));
    // If there is none, it is not known whether one will come.
    let (task, remote) = killed_while_sending(false, Resend::Safe, false).await;
    let metadata = task.metadata.as_ref().unwrap();
    let word = |key: &str| metadata.get(key).and_then(|word| word.as_text());
    assert_eq!(task.status.state, TaskState::Failed);
    assert_eq!(word("switchboard/reason").as_deref(), Some("interrupted"));
    assert_eq!(word("switchboard/reasonDetail").as_deref(), Some("send_unknown"));
    assert_eq!(remote.calls("SendMessage").len(), 1, "nothing is sent twice in silence");
    // Unless the operator has said so.
    let (task, remote) = killed_while_sending(false, Resend::Always, false).await;
    assert_eq!((task.status.state, remote.calls("SendMessage").len()), (TaskState::Completed, 2));
}

fn detail(task: &Task) -> Option<String> {
    task.metadata.as_ref().unwrap().get("switchboard/reasonDetail")?.as_text()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_was_perhaps_sent_has_arrived_if_its_end_was_pushed() {
    for is_pushed in [true, false] {
        let here = tempfile::tempdir().unwrap();
        let remote = Scripted::pushing(|asked, _| match asked.method() {
            "SendMessage" => Reply::Stalls,
            "GetTask" => Reply::Result(task("TASK_STATE_COMPLETED", "m")),
            _ => Reply::Error(-32004),
        })
        .await;
        let start = || tokio::task::block_in_place(|| hub(here.path(), &remote.url(), |_| {}));
        let front = start();
        let id = begin(&caller(&front, Version::V1), "go").await;
        remote.called("SendMessage", 1).await;
        if is_pushed {
            let sent = remote.calls("SendMessage").remove(0);
            let config = &sent.body["params"]["configuration"]["taskPushNotificationConfig"];
            let (url, token) = (config["url"].as_str().unwrap(), config["token"].as_str().unwrap());
            let status = json!({ "state": "TASK_STATE_COMPLETED" });
            let update = json!({ "statusUpdate": { "taskId": "r", "contextId": "rc", "status": status } });
            assert!((200..300).contains(&push(url, token, &update).await));
        }
        tokio::task::block_in_place(|| front.kill());
        let front = start();
        let task = ended(&caller(&front, Version::V1), &id).await;
        if is_pushed {
            assert_eq!((task.status.state, texts(&task)), (TaskState::Completed, vec!["made".to_owned()]), "{task:?}");
            assert_eq!(remote.calls("ListTasks").len(), 0, "it is known which task it is");
        } else {
            assert_eq!((task.status.state, detail(&task).as_deref()), (TaskState::Failed, Some("send_unknown")));
        }
        assert_eq!(remote.calls("SendMessage").len(), 1);
        tokio::task::block_in_place(|| front.kill());
    }
}

/// The server is killed while it sends an answer, and comes back to an agent that says this of its task at first.
async fn killed_while_answering(first: impl Fn(&str) -> Value + Send + Sync + 'static) -> (Task, usize) {
    let here = tempfile::tempdir().unwrap();
    let (is_back, looks) = (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
    let is_back_there = Arc::clone(&is_back);
    let answer_id = parking_lot::Mutex::new(String::new());
    let remote = Scripted::start(false, move |asked, before| match (asked.method(), before) {
        ("SendMessage", 0) => Reply::Result(json!({ "task": asking(&["m"]) })),
        ("SendMessage", _) if !is_back_there.load(Ordering::SeqCst) => {
            *answer_id.lock() = asked.body["params"]["message"]["messageId"].as_str().unwrap().to_owned();
            Reply::Stalls
        }
        ("SendMessage", _) => Reply::Result(json!({ "task": task("TASK_STATE_COMPLETED", "m") })),
        ("GetTask", _) if looks.fetch_add(1, Ordering::SeqCst) == 0 => Reply::Result(first(&answer_id.lock())),
        ("GetTask", _) => Reply::Result(task("TASK_STATE_COMPLETED", "m")),
        _ => Reply::Error(-32004),
    })
    .await;
    let start = || tokio::task::block_in_place(|| hub(here.path(), &remote.url(), |_| {}));
    let front = start();
    let client = caller(&front, Version::V1);
    let asked = client.stream(&CallContext::default(), say("go")).await.unwrap().finish().await.unwrap();
    let id = asked.task().unwrap().id.clone();
    let mut answer = say("yes");
    answer.message.task_id = Some(id.clone());
    let _answering = client.stream(&CallContext::default(), answer).await.unwrap();
    remote.called("SendMessage", 2).await;
    tokio::task::block_in_place(|| front.kill());
    is_back.store(true, Ordering::SeqCst);
    let front = start();
    let task = ended(&caller(&front, Version::V1), &id).await;
    tokio::task::block_in_place(|| front.kill());
    (task, remote.calls("SendMessage").len())
}

/// A task that waits for an answer and has these messages.
fn asking(messages: &[&str]) -> Value {
    let mut waiting = task("TASK_STATE_INPUT_REQUIRED", "m");
    let message = |id: &&str| json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": "go" }] });
    waiting["history"] = messages.iter().map(message).collect();
    waiting["status"]["message"] = json!({ "messageId": "q", "role": "ROLE_AGENT", "parts": [{ "text": "ok?" }] });
    waiting
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_perhaps_sent_is_looked_for_in_its_task() {
    // The task has gone on, or has the answer in its history.
    let (gone_on, sent) = killed_while_answering(|_| task("TASK_STATE_COMPLETED", "m")).await;
    assert_eq!((gone_on.status.state, sent), (TaskState::Completed, 2), "{gone_on:?}");
    let (arrived, sent) = killed_while_answering(|answer| asking(&["m", answer])).await;
    assert_eq!((arrived.status.state, sent), (TaskState::Completed, 2), "{arrived:?}");
    // It still waits, and its history has other messages only: the answer is sent again.
    let (resent, sent) = killed_while_answering(|_| asking(&["m"])).await;
    assert_eq!((resent.status.state, sent), (TaskState::Completed, 3), "{resent:?}");
    // An agent that tells no history says nothing.
    let (unknown, sent) = killed_while_answering(|_| asking(&[])).await;
    assert_eq!((unknown.status.state, sent), (TaskState::Failed, 2), "{unknown:?}");
    assert_eq!(detail(&unknown).as_deref(), Some("send_unknown"));
}
