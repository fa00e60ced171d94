//! What is owed to remote tasks beside their turns: a cancellation when a task ends here without the remote's word, and a
//! look when a question is settled there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use switchboard_a2a::{
    Message, Role, StreamResponse, TaskId, TaskState, TaskStatus, TaskStatusUpdate, Timestamp, Version,
};
use switchboard_client::{CallContext, Client, Update};
use switchboard_engine::clock::{Clock, SimulatedClock, SystemClock};
use switchboard_engine::event::Event;
use switchboard_engine::store::Store;
use switchboard_engine::store::feed::Position;
use switchboard_engine::store::hub::{Advance, HubStore, NewJob};
use switchboard_engine::{AgentName, Seq};
use switchboard_hub::EndedTask;
use switchboard_hub::jobs::{CANCEL_KIND, CancelJobs, JobRunner, JobSettings, RemoteDirectory, owed_cancel};
use switchboard_hub::remote::RemoteParts;
use switchboard_hub::remote_poll::{Looked, PollSettings, RemotePoll};

use super::script::{Reply, Scripted, task};
use super::world::{Running, caller, hub_with_grace, say};

pub(super) struct One(pub(super) RemoteParts);

impl RemoteDirectory for One {
    fn remote(&self, name: &AgentName) -> Option<RemoteParts> {
        (name.as_str() == "front").then(|| self.0.clone())
    }
}

pub(super) async fn begun(client: &Client, text: &str) -> TaskId {
    let mut stream = client.stream(&CallContext::default(), say(text)).await.unwrap();
    let told = async {
        while let Some(update) = stream.next().await.unwrap() {
            if matches!(update, Update::Event(event) if matches!(*event, StreamResponse::ArtifactUpdate(_))) {
                break;
            }
        }
    };
    tokio::time::timeout(crate::HANG_GUARD, told).await.expect("it begins");
    stream.task_id().unwrap()
}

/// The ends of a task in its log.
pub(super) async fn ends(front: &Running, id: &TaskId) -> Vec<TaskStatusUpdate> {
    let row = front.store.row(id).await.unwrap().unwrap();
    let events = front.engine.log(id, row.key).after(Seq(0), usize::MAX).await.unwrap();
    let end = |line: &Bytes| match Event::decode(line) {
        Ok(Event::StatusUpdate(update)) if update.status.state.is_terminal() => Some(update),
        _ => None,
    };
    events.iter().filter_map(|event| end(&event.line)).collect()
}

/// The job that the end of a task owes, as a reader of its log finds it.
pub(super) async fn owed(front: &Running, id: &TaskId) -> Option<NewJob> {
    let row = front.store.row(id).await.unwrap().unwrap();
    let end = ends(front, id).await.pop().expect("it has ended");
    let end = TaskStatusUpdate { status: TaskStatus { timestamp: Some(Timestamp(1_000)), ..end.status }, ..end };
    owed_cancel(&EndedTask { key: row.key, task: &row.task, seq: Seq(0), end: &end, may_be_remote: true })
}

pub(super) async fn owe(store: &dyn HubStore, job: NewJob) {
    let consumer = store.take_consumer("test").await.unwrap();
    let advance = Advance {
        consumer: "test".to_owned(),
        fence: consumer.fence,
        cursor: None,
        state: Bytes::new(),
        health: Vec::new(),
        jobs: vec![job],
        journal: Vec::new(),
    };
    assert!(store.advance(advance).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_ended_by_force_leaves_no_remote_task_behind() {
    let is_deaf = Arc::new(AtomicBool::new(true));
    let deaf = Arc::clone(&is_deaf);
    let remote = Scripted::start(false, move |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(serde_json::json!({ "task": task("TASK_STATE_WORKING", "m") })),
        "GetTask" => Reply::Result(task("TASK_STATE_WORKING", "m")),
        "CancelTask" if deaf.load(Ordering::SeqCst) => Reply::Stalls,
        "CancelTask" => Reply::Result(task("TASK_STATE_CANCELED", "m")),
        _ => Reply::Error(-32601),
    })
    .await;
    let here = tempfile::tempdir().unwrap();
    let start = || hub_with_grace(here.path(), &remote.url(), Duration::from_millis(20), |_| {});
    let (front, parts) = tokio::task::block_in_place(start);
    let client = caller(&front, Version::V1);
    let id = begun(&client, "go").await;
    let canceled = client.cancel(&CallContext::default(), &id, None).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled, "the remote agent's silence does not hold it up");
    let job = owed(&front, &id).await.expect("the remote has not said that it has ended");
    owe(&*front.store, job.clone()).await;
    is_deaf.store(false, Ordering::SeqCst);
    let clock = SimulatedClock::at(Timestamp(1_000));
    let runner = |remotes: Arc<dyn RemoteDirectory>, clock: &SimulatedClock| {
        let clock: Arc<dyn Clock> = Arc::new(clock.clone());
        let (engine, store) = (front.engine.clone(), front.store.clone());
        let cancel = CancelJobs {
            engine,
            remotes,
            store: store.clone(),
            clock: clock.clone(),
            settings: JobSettings::default(),
        };
        JobRunner::new(store, clock).with(CANCEL_KIND, Arc::new(cancel))
    };
    let before = remote.calls("CancelTask").len();
    let runner_of_one = runner(Arc::new(One(parts.clone())), &clock);
    assert_eq!(runner_of_one.run_due().await.unwrap(), 1);
    assert_eq!(remote.calls("CancelTask").len(), before + 1, "it is canceled there");
    assert_eq!(runner_of_one.run_due().await.unwrap(), 0, "and once");
    // An agent that is gone is waited for, ever longer, for a day; then the journal says what is left.
    struct Nothing;
    impl RemoteDirectory for Nothing {
        fn remote(&self, _: &AgentName) -> Option<RemoteParts> {
            None
        }
    }
    owe(&*front.store, job).await;
    let alone = runner(Arc::new(Nothing), &clock);
    let mut runs = 0;
    for _ in 0..24 * 60 + 1 {
        runs += alone.run_due().await.unwrap();
        clock.advance(Duration::from_secs(60));
    }
    runs += alone.run_due().await.unwrap();
    clock.advance(Duration::from_secs(3_600));
    runs += alone.run_due().await.unwrap();
    assert!((25..60).contains(&runs), "about once an hour in the end: {runs}");
    assert_eq!(alone.run_due().await.unwrap(), 0, "nothing is left to do");
    let rows = front.store.read_all(Position::default(), 10_000, usize::MAX).await.unwrap().rows;
    let said = rows.iter().filter(|row| format!("{row:?}").contains("remote.orphaned.front")).count();
    assert_eq!(said, 1, "the journal says so once");
    drop((runner_of_one, alone, parts));
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_settled_there_is_settled_here() {
    let is_settled = Arc::new(AtomicBool::new(false));
    let settled = Arc::clone(&is_settled);
    let remote = Scripted::start(false, move |asked, _| {
        let mut waiting = task("TASK_STATE_INPUT_REQUIRED", "m");
        waiting["status"]["message"] = serde_json::to_value(Message::text(Role::Agent, "ok?")).unwrap();
        match asked.method() {
            "SendMessage" => Reply::Result(serde_json::json!({ "task": waiting })),
            "GetTask" if settled.load(Ordering::SeqCst) => Reply::Result(task("TASK_STATE_COMPLETED", "m")),
            "GetTask" => Reply::Result(waiting),
            "SubscribeToTask" => Reply::Error(-32004),
            _ => Reply::Error(-32601),
        }
    })
    .await;
    let here = tempfile::tempdir().unwrap();
    let start = || hub_with_grace(here.path(), &remote.url(), Duration::from_secs(60), |_| {});
    let (front, parts) = tokio::task::block_in_place(start);
    let client = caller(&front, Version::V1);
    let stream = client.stream(&CallContext::default(), say("go")).await.unwrap();
    let asked = stream.finish().await.unwrap().task().unwrap().clone();
    assert_eq!(asked.status.state, TaskState::InputRequired);
    let poll = RemotePoll {
        engine: front.engine.clone(),
        store: front.store.clone(),
        remotes: Arc::new(One(parts)),
        settings: PollSettings::default(),
    };
    let agents = || vec![AgentName::from("front")];
    let now = SystemClock.now();
    let after = |seconds: i64| Timestamp(now.0 + seconds * 1_000);
    let looks = || remote.calls("GetTask").len();
    let mut looked = Looked::until(now);
    poll.look(agents(), &mut looked, after(10)).await.unwrap();
    assert_eq!(looks(), 0, "it was asked just now");
    poll.look(agents(), &mut looked, after(60)).await.unwrap();
    assert_eq!((looks(), &looked), (1, &Looked::until(after(60))));
    let waits = client.get(&CallContext::default(), &asked.id, None).await.unwrap();
    assert_eq!(waits.status.state, TaskState::InputRequired, "it still waits there");
    is_settled.store(true, Ordering::SeqCst);
    // A push notification is a reason to look at once.
    poll.look_now(&asked.id).await.unwrap();
    let ended = async {
        loop {
            let task = client.get(&CallContext::default(), &asked.id, None).await.unwrap();
            if task.status.state.is_terminal() {
                return task;
            }
            tokio::task::yield_now().await;
        }
    };
    let ended = tokio::time::timeout(crate::HANG_GUARD, ended).await.expect("it goes on");
    assert_eq!(ended.status.state, TaskState::Completed, "{ended:?}");
    assert_eq!(remote.calls("SendMessage").len(), 1);
    poll.look_now(&asked.id).await.unwrap();
    drop(poll);
    tokio::task::block_in_place(|| front.kill());
}
