//! What a remote agent is told of a task here, and what becomes of answers: refused ones, and those to a task that has
//! said things before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::{Message, Role, SendRequest, Task, TaskId, TaskState, Timestamp, Version};
use switchboard_client::{CallContext, Client};
use switchboard_engine::CHAIN_KEY;
use switchboard_engine::clock::SimulatedClock;

use super::crashes::{ended, texts};
use super::owed::begun;
use super::script::{Reply, Scripted, task};
use super::world::{Worker, caller, hub, passing, say, worker};

async fn finished(client: &Client, request: SendRequest) -> Task {
    let stream = client.stream(&CallContext::default(), request).await.unwrap();
    let finished = tokio::time::timeout(crate::HANG_GUARD, stream.finish()).await.expect("it ends");
    finished.unwrap().task().unwrap().clone()
}

fn answer(asked: &Task, text: &str) -> SendRequest {
    let mut request = say(text);
    request.message.context_id = Some(asked.context_id.clone());
    request.message.task_id = Some(asked.id.clone());
    request
}

fn asking() -> Value {
    let mut waiting = task("TASK_STATE_INPUT_REQUIRED", "m");
    waiting["status"]["message"] = serde_json::to_value(Message::text(Role::Agent, "ok?")).unwrap();
    waiting
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_refused_because_the_task_has_ended_there_ends_it_here_too() {
    let here = tempfile::tempdir().unwrap();
    let remote = Scripted::start(false, |asked, before| match (asked.method(), before) {
        ("SendMessage", 0) => Reply::Result(json!({ "task": asking() })),
        ("SendMessage", _) => Reply::Error(-32602),
        ("GetTask", _) => Reply::Result(task("TASK_STATE_COMPLETED", "m")),
        _ => Reply::Error(-32004),
    })
    .await;
    let front = tokio::task::block_in_place(|| hub(here.path(), &remote.url(), |_| {}));
    let client = caller(&front, Version::V1);
    let asked = finished(&client, say("go")).await;
    assert_eq!(asked.status.state, TaskState::InputRequired);
    let task = finished(&client, answer(&asked, "yes")).await;
    assert_eq!((task.status.state, texts(&task)), (TaskState::Completed, vec!["made".to_owned()]), "{task:?}");
    let said = task.history.iter().any(|message| message.joined_text().contains("has not taken the answer"));
    assert!(said, "{:?}", task.history);
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_over_which_the_agent_breaks_down_ends_neither_the_task_here_nor_the_one_there() {
    // How often it breaks down, and whether it tells which messages it has taken: only then is the answer sent again.
    for (breakdowns, has_history) in [(1, true), (3, true), (1, false)] {
        let here = tempfile::tempdir().unwrap();
        let mut question = asking();
        question["status"]["message"]["messageId"] = json!("question");
        if !has_history {
            question["history"] = json!([]);
        }
        let remote = Scripted::start(false, move |asked, before| match (asked.method(), before) {
            ("SendMessage", 0) => Reply::Result(json!({ "task": question })),
            ("SendMessage", _) if before <= breakdowns => Reply::Error(-32603),
            ("SendMessage", _) => Reply::Result(json!({ "task": task("TASK_STATE_COMPLETED", "m") })),
            ("GetTask", _) => Reply::Result(question.clone()),
            _ => Reply::Error(-32601),
        })
        .await;
        let clock = SimulatedClock::at(Timestamp(1_000));
        let front = tokio::task::block_in_place(|| {
            hub(here.path(), &remote.url(), |parts| {
                parts.clock = Arc::new(clock.clone());
                // Time passes faster than requests are answered.
                (parts.settings.lost_after, parts.settings.deadline) = (Duration::MAX, None);
                parts.callbacks = None;
            })
        });
        let client = caller(&front, Version::V1);
        let asked = finished(&client, say("go")).await;
        assert_eq!(asked.status.state, TaskState::InputRequired);
        let second = Duration::from_secs(1);
        let mut now = passing(&clock, second, finished(&client, answer(&asked, "yes"))).await;
        if breakdowns == 3 || !has_history {
            assert_eq!(now.status.state, TaskState::InputRequired, "it asks again: {now:?}");
            let said = now.history.iter().any(|message| message.joined_text().contains("it broke down"));
            assert!(said, "{:?}", now.history);
            now = passing(&clock, second, finished(&client, answer(&now, "yes, really"))).await;
        }
        assert_eq!((now.status.state, texts(&now)), (TaskState::Completed, vec!["made".to_owned()]), "{now:?}");
        assert_eq!(remote.calls("SendMessage").len(), breakdowns + 2);
        assert_eq!(remote.calls("CancelTask").len(), 0);
        tokio::task::block_in_place(|| front.kill());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_before_an_answer_is_not_said_again_after_it() {
    let (there, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let agent = Worker::new();
    let remote = tokio::task::block_in_place(|| worker(there.path(), &agent));
    let front = tokio::task::block_in_place(|| hub(here.path(), &remote.url("worker"), |_| {}));
    let client = caller(&front, Version::V1);
    let asked = finished(&client, say("ask late")).await;
    assert_eq!((asked.status.state, texts(&asked)), (TaskState::InputRequired, vec!["one ".to_owned()]));
    let task = finished(&client, answer(&asked, "Oslo")).await;
    assert_eq!((task.status.state, texts(&task)), (TaskState::Completed, vec!["one two".to_owned()]));
    for text in ["at it", "which city?"] {
        let said = task.history.iter().filter(|message| message.joined_text() == text).count();
        assert_eq!(said, 1, "{text}: {:?}", task.history);
    }
    tokio::task::block_in_place(|| {
        front.kill();
        remote.kill();
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_agent_hears_where_its_task_comes_from() {
    let here = tempfile::tempdir().unwrap();
    let remote =
        Scripted::start(false, |_, _| Reply::Result(json!({ "task": task("TASK_STATE_COMPLETED", "m") }))).await;
    let front = tokio::task::block_in_place(|| hub(here.path(), &remote.url(), |_| {}));
    let client = caller(&front, Version::V1);
    let mut request = say("go");
    let claimed = json!({
        CHAIN_KEY: {
            "root": { "node": "elsewhere", "task": "first" },
            "hops": [{ "node": "elsewhere", "agent": "planner", "task": "first" }],
            "deadline": "2999-01-01T00:00:00Z", "budget": 7,
        },
        "kept": true,
    });
    request.message.metadata = Some(serde_json::from_str(&claimed.to_string()).unwrap());
    let done = finished(&client, request).await;
    let sent = remote.calls("SendMessage").remove(0);
    let message = &sent.body["params"]["message"]["metadata"];
    assert_eq!(message["kept"], true);
    let chain = &message[CHAIN_KEY];
    assert_eq!(chain["root"], json!({ "node": "elsewhere", "task": "first" }));
    assert_eq!((&chain["budget"], chain["deadline"].is_null()), (&json!(7), false), "{chain}");
    assert_eq!(chain["hops"][0]["agent"], "planner");
    let own = json!({ "node": front.engine.node_id(), "agent": "front", "task": done.id });
    assert_eq!(chain["hops"][1], own);
    // Without a trace or a correlation of the caller's, what follows from this task still belongs together.
    let metadata = &sent.body["params"]["metadata"];
    assert_eq!(metadata["correlationId"], done.id.as_str());
    assert_eq!(sent.header("x-correlation-id"), Some(done.id.as_str()));
    let trace = metadata["a2a.trace"]["traceId"].as_str().unwrap();
    assert!(sent.header("traceparent").unwrap().contains(trace));
    assert_eq!(metadata["a2a.trace"]["callerAgent"], "planner");
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_that_call_each_other_come_to_an_end() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    // The first server is told of the second one's address before that has one.
    let door = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/a2a/front", door.local_addr().unwrap());
    let first = tokio::task::block_in_place(|| hub(folders[0].path(), &url, |_| {}));
    let second = tokio::task::block_in_place(|| hub(folders[1].path(), &first.url("front"), |_| {}));
    let to = second.address;
    let forwarding = tokio::spawn(async move {
        while let Ok((mut from, _)) = door.accept().await {
            tokio::spawn(async move {
                let mut to = tokio::net::TcpStream::connect(to).await?;
                tokio::io::copy_bidirectional(&mut from, &mut to).await
            });
        }
    });
    let task = finished(&caller(&first, Version::V1), say("go")).await;
    assert_eq!(task.status.state, TaskState::Rejected, "{task:?}");
    let metadata = task.metadata.as_ref().unwrap();
    let detail = metadata.get("switchboard/reasonDetail").and_then(|detail| detail.as_text());
    assert_eq!(detail.as_deref(), Some("delegation_loop"), "{metadata:?}");
    forwarding.abort();
    tokio::task::block_in_place(|| {
        first.kill();
        second.kill();
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_has_completed_before_it_could_be_canceled_is_completed_here_too() {
    let here = tempfile::tempdir().unwrap();
    let has_ended = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&has_ended);
    let remote = Scripted::start(false, move |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_WORKING", "m") })),
        "CancelTask" => {
            ends.store(true, Ordering::SeqCst);
            Reply::Error(-32002)
        }
        "GetTask" if ends.load(Ordering::SeqCst) => Reply::Result(task("TASK_STATE_COMPLETED", "m")),
        "GetTask" => Reply::Result(task("TASK_STATE_WORKING", "m")),
        _ => Reply::Error(-32601),
    })
    .await;
    let front = tokio::task::block_in_place(|| hub(here.path(), &remote.url(), |_| {}));
    let client = caller(&front, Version::V1);
    let id = begun(&client, "go").await;
    // That it was not canceled is an error, or the task as it has ended.
    let _ = client.cancel(&CallContext::default(), &id, None).await;
    let task = ended(&client, &id).await;
    assert_eq!((task.status.state, texts(&task)), (TaskState::Completed, vec!["made".to_owned()]), "{task:?}");
    let remote = task.metadata.as_ref().unwrap().get(switchboard_hub::remote::REMOTE_KEY).unwrap().as_str().to_owned();
    assert!(remote.contains("TASK_STATE_COMPLETED"), "it is the agent's own end: {remote}");
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_breaks_down_for_a_while_is_asked_again() {
    let here = tempfile::tempdir().unwrap();
    let remote = Scripted::start(false, |asked, before| match (asked.method(), before) {
        ("SendMessage", _) => Reply::Result(json!({ "task": task("TASK_STATE_WORKING", "m") })),
        ("GetTask", 0..3) => Reply::Error(-32603),
        ("GetTask", _) => Reply::Result(task("TASK_STATE_COMPLETED", "m")),
        _ => Reply::Error(-32601),
    })
    .await;
    let clock = SimulatedClock::at(Timestamp(1_000));
    let front = tokio::task::block_in_place(|| {
        hub(here.path(), &remote.url(), |parts| {
            parts.clock = Arc::new(clock.clone());
            parts.settings.lost_after = Duration::from_secs(u32::MAX.into());
            parts.settings.deadline = None;
        })
    });
    let client = caller(&front, Version::V1);
    let id = begun(&client, "go").await;
    let task = passing(&clock, Duration::from_millis(100), ended(&client, &id)).await;
    assert_eq!(task.status.state, TaskState::Completed, "{task:?}");
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_does_not_wait_for_the_next_attempt() {
    let here = tempfile::tempdir().unwrap();
    let is_canceled = Arc::new(AtomicBool::new(false));
    let canceled = Arc::clone(&is_canceled);
    let remote = Scripted::start(false, move |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_WORKING", "m") })),
        "CancelTask" => {
            canceled.store(true, Ordering::SeqCst);
            Reply::Result(task("TASK_STATE_CANCELED", "m"))
        }
        "GetTask" if canceled.load(Ordering::SeqCst) => Reply::Result(task("TASK_STATE_CANCELED", "m")),
        "GetTask" => Reply::Error(-32603),
        _ => Reply::Error(-32601),
    })
    .await;
    // Its time stands still, so the next attempt never comes by itself.
    let clock = SimulatedClock::at(Timestamp(1_000));
    let front =
        tokio::task::block_in_place(|| hub(here.path(), &remote.url(), |parts| parts.clock = Arc::new(clock.clone())));
    let client = caller(&front, Version::V1);
    let id: TaskId = begun(&client, "go").await;
    remote.called("GetTask", 1).await;
    let context = CallContext::default();
    let cancel = client.cancel(&context, &id, None);
    let task = tokio::time::timeout(crate::HANG_GUARD, cancel).await.expect("it is canceled").unwrap();
    assert_eq!(task.status.state, TaskState::Canceled);
    assert!(is_canceled.load(Ordering::SeqCst), "the agent was told");
    let remote = task.metadata.as_ref().unwrap().get(switchboard_hub::remote::REMOTE_KEY).unwrap().as_str().to_owned();
    assert!(remote.contains("TASK_STATE_CANCELED"), "it is the agent's own end: {remote}");
    tokio::task::block_in_place(|| front.kill());
}
