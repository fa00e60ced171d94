//! Remote agents that are at another address than when their tasks were begun: who is there now knows nothing of them, or
//! has other tasks of the same ids.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::{Task, TaskState, Timestamp, Version};
use switchboard_client::CallContext;
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::store::Store;
use switchboard_engine::store::feed::Position;
use switchboard_engine::store::hub::NewJob;
use switchboard_hub::jobs::{CANCEL_KIND, CancelJobs, JobRunner, JobSettings};
use switchboard_hub::remote_poll::{PollSettings, RemotePoll};

use super::crashes::{begin, ended};
use super::owed::{One, begun, owe, owed};
use super::script::{Reply, Scripted, task};
use super::world::{caller, hub, hub_with_grace, say};

const GRACE: Duration = Duration::from_secs(60);

/// An agent that works, asks, or says nothing, as it is told; its only task is canceled by request.
async fn agent() -> Scripted {
    Scripted::start(true, |asked, _| {
        let text = asked.body["params"]["message"]["parts"][0]["text"].as_str().unwrap_or_default();
        match (asked.method(), text) {
            ("SendMessage", "stall") => Reply::Stalls,
            ("SendMessage", "ask") => Reply::Result(json!({ "task": task("TASK_STATE_INPUT_REQUIRED", "m") })),
            ("SendMessage", _) => Reply::Result(json!({ "task": task("TASK_STATE_WORKING", "m") })),
            ("CancelTask", _) => Reply::Result(task("TASK_STATE_CANCELED", "m")),
            ("GetTask", _) => Reply::Result(task("TASK_STATE_WORKING", "m")),
            _ => Reply::Error(-32601),
        }
    })
    .await
}

/// What was asked of an agent about tasks.
fn asked(remote: &Scripted) -> usize {
    ["SendMessage", "GetTask", "SubscribeToTask", "ListTasks", "CancelTask"]
        .iter()
        .map(|method| remote.calls(method).len())
        .sum()
}

fn assert_moved(task: &Task) {
    let said = task.status.message.as_ref().unwrap().joined_text();
    let detail = task.metadata.as_ref().unwrap().get("switchboard/reasonDetail").and_then(|detail| detail.as_text());
    assert_eq!((task.status.state, detail.as_deref()), (TaskState::Failed, Some("remote_lost")), "{task:?}");
    assert!(said.contains("at another address now"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_task_is_sought_at_no_other_address_than_its_own() {
    let (before, after) = (agent().await, agent().await);
    let here = tempfile::tempdir().unwrap();
    let front = tokio::task::block_in_place(|| hub(here.path(), &before.url(), |_| {}));
    let client = caller(&front, Version::V1);
    let followed = begun(&client, "go").await;
    let stream = client.stream(&CallContext::default(), say("ask")).await.unwrap();
    let waiting = stream.finish().await.unwrap().task().unwrap().id.clone();
    let sent = begin(&client, "stall").await;
    before.called("SendMessage", 3).await;
    tokio::task::block_in_place(|| front.kill());

    let start = || hub_with_grace(here.path(), &after.url(), GRACE, |_| {});
    let (front, parts) = tokio::task::block_in_place(start);
    let client = caller(&front, Version::V1);
    assert_moved(&ended(&client, &followed).await);
    assert_moved(&ended(&client, &sent).await);
    let remotes = Arc::new(One(parts));
    let (engine, store) = (front.engine.clone(), front.store.clone());
    let settings = PollSettings::default();
    let poll = RemotePoll { engine: engine.clone(), store: store.clone(), remotes: remotes.clone(), settings };
    poll.look_now(&waiting).await.unwrap();
    assert_moved(&ended(&client, &waiting).await);

    // What is owed to the remote tasks cannot be done there either, and the journal says what is left where.
    let clock: Arc<SimulatedClock> = Arc::new(SimulatedClock::at(Timestamp(1_000)));
    let cancel =
        CancelJobs { engine, remotes, store: store.clone(), clock: clock.clone(), settings: JobSettings::default() };
    let runner = JobRunner::new(store.clone(), clock).with(CANCEL_KIND, Arc::new(cancel));
    let mut jobs = Vec::new();
    for id in [&followed, &waiting, &sent] {
        let job = owed(&front, id).await.expect("it may be at work");
        owe(&*store, job.clone()).await;
        jobs.push(job);
    }
    assert_eq!((runner.run_due().await.unwrap(), runner.run_due().await.unwrap()), (3, 0), "at once");
    let rows = store.read_all(Position::default(), 10_000, usize::MAX).await.unwrap().rows;
    let lines: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
    let left: Vec<&String> = lines.iter().filter(|line| line.contains("remote.orphaned.front")).collect();
    assert!(left.len() == 3 && left.iter().all(|line| !line.contains(&before.url())), "for viewers: {left:?}");
    let told: Vec<&String> = lines.iter().filter(|line| line.contains("audit.agents.orphaned")).collect();
    assert!(told.len() == 3 && told.iter().all(|line| line.contains(&before.url())), "for administrators: {told:?}");
    assert_eq!(asked(&after), 0, "nobody else was asked");

    // A job of an earlier version does not say where the task was.
    let NewJob { body, .. } = &jobs[0];
    let mut body: Value = serde_json::from_slice(body).unwrap();
    assert!(body.get("url").is_none(), "{body}");
    body["remote"] = "r".into();
    owe(&*store, NewJob { body: body.to_string().into(), ..jobs[0].clone() }).await;
    assert_eq!((runner.run_due().await.unwrap(), after.calls("CancelTask").len()), (1, 1));
    drop((runner, poll));
    tokio::task::block_in_place(|| front.kill());
}
