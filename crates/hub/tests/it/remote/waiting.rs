//! Tasks of remote agents that wait for an answer: when they are looked at, and what a look may conclude.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use switchboard_a2a::{Message, Role, TaskId, TaskState, Timestamp, Version};
use switchboard_client::{CallContext, Client};
use switchboard_engine::clock::{Clock, SimulatedClock, SystemClock};
use switchboard_engine::store::forwarding::{ForwardingStore, StoreHooks};
use switchboard_engine::store::{
    Append, AppendGuard, LoadedTask, RowPatch, RowState, SideWrites, Store, StoreError, StoreFuture, TaskIdentity,
};
use switchboard_engine::{AgentName, Seq};
use switchboard_hub::jobs::RemoteDirectory;
use switchboard_hub::registry::{BreakerSettings, CircuitBreaker, RequestOutcome, RequestSource};
use switchboard_hub::remote::RemoteParts;
use switchboard_hub::remote_poll::{Looked, PollSettings, RemotePoll};

use super::far;
use super::owed::One;
use super::script::{Reply, Scripted, task};
use super::world::{caller, hub_with_grace, passing, say};
use crate::running::{Running, START, fanout, folder};

const NOT_FOUND: i64 = -32001;
/// In place of an error, a page that is none.
const PAGE: i64 = 200;

fn waiting() -> Value {
    let mut waiting = task("TASK_STATE_INPUT_REQUIRED", "m");
    waiting["status"]["message"] = serde_json::to_value(Message::text(Role::Agent, "ok?")).unwrap();
    waiting
}

/// An agent that asks, and answers looks with an error if there is one.
async fn asking(error: &Arc<AtomicI64>) -> Scripted {
    let error = Arc::clone(error);
    Scripted::start(false, move |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": waiting() })),
        "GetTask" => match error.load(Ordering::SeqCst) {
            0 => Reply::Result(waiting()),
            PAGE => Reply::Page("<html>Sign in</html>"),
            code => Reply::Error(code),
        },
        "SubscribeToTask" => Reply::Error(-32004),
        _ => Reply::Error(-32601),
    })
    .await
}

async fn asked(client: &Client, text: &str) -> TaskId {
    let stream = client.stream(&CallContext::default(), say(text)).await.unwrap();
    let task = stream.finish().await.unwrap().task().unwrap().clone();
    assert_eq!(task.status.state, TaskState::InputRequired);
    task.id
}

async fn state(client: &Client, id: &TaskId) -> TaskState {
    client.get(&CallContext::default(), id, None).await.unwrap().status.state
}

/// One task cannot be loaded; reads of whole logs are counted.
#[derive(Clone, Default)]
struct Faults {
    broken: Arc<Mutex<Option<TaskId>>>,
    reads: Arc<AtomicUsize>,
}

impl StoreHooks for Faults {
    fn load(&self, store: &Arc<dyn Store>, id: &TaskId) -> StoreFuture<Option<LoadedTask>> {
        if self.broken.lock().as_ref() == Some(id) {
            return Box::pin(std::future::ready(Err(StoreError::Failed("as the test has ordered".into()))));
        }
        store.load(id)
    }

    fn before_read(&self) {
        self.reads.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_stays_open_until_its_agent_says_that_it_is_settled() {
    let error = Arc::new(AtomicI64::new(0));
    let remote = asking(&error).await;
    let here = tempfile::tempdir().unwrap();
    let start = || hub_with_grace(here.path(), &remote.url(), Duration::from_secs(60), |_| {});
    let (front, parts) = tokio::task::block_in_place(start);
    let client = caller(&front, Version::V1);
    let ids = [asked(&client, "one").await, asked(&client, "two").await, asked(&client, "three").await];
    let faults = Faults::default();
    *faults.broken.lock() = Some(ids[0].clone());
    let breaker_clock = SimulatedClock::at(Timestamp(1_000));
    let breaker = BreakerSettings { failures: 2, open: Duration::from_secs(60) };
    let breaker = Arc::new(CircuitBreaker::new(breaker, Arc::new(breaker_clock.clone()), |_| {}));
    let parts = RemoteParts { breaker: Arc::clone(&breaker), ..parts };
    let poll = RemotePoll {
        engine: front.engine.clone(),
        store: Arc::new(ForwardingStore { store: front.store.clone(), hooks: faults.clone() }),
        remotes: Arc::new(One(parts)),
        settings: PollSettings::default(),
    };
    let now = SystemClock.now();
    let after = |seconds: i64| Timestamp(now.0 + seconds * 1_000);
    let agents = || vec![AgentName::from("front"), AgentName::from("gone")];
    let looks = || remote.calls("GetTask").len();
    let mut looked = Looked::until(now);
    poll.look(agents(), &mut looked, after(60)).await.unwrap();
    assert_eq!(looks(), 2, "one task that cannot be read holds up no other");
    assert_eq!(faults.reads.load(Ordering::SeqCst), 0, "no log is read from its beginning");
    *faults.broken.lock() = None;
    // What says nothing of the task closes no question.
    for (number, code) in [-32603, -32000, -32602].into_iter().enumerate() {
        error.store(code, Ordering::SeqCst);
        poll.look_now(&ids[number % 3]).await.unwrap();
        assert_eq!(state(&client, &ids[number % 3]).await, TaskState::InputRequired, "{code}");
    }
    // An agent whose breaker is open is not asked; what falls due meanwhile is looked at once it is back.
    error.store(0, Ordering::SeqCst);
    (0..2).for_each(|_| breaker.allow().unwrap().record(RequestSource::Probe, RequestOutcome::Failed));
    let before = looks();
    poll.look(agents(), &mut looked, after(150)).await.unwrap();
    poll.look(agents(), &mut looked, after(151)).await.unwrap();
    assert_eq!((looks(), looked.behind.get(&AgentName::from("front"))), (before, Some(&after(60))));
    breaker_clock.advance(Duration::from_secs(61));
    poll.look(agents(), &mut looked, after(152)).await.unwrap();
    assert!(looks() > before, "a trial is let through");
    poll.look(agents(), &mut looked, after(153)).await.unwrap();
    assert_eq!((looks() >= before + 3, &looked.behind), (true, &Looked::until(now).behind));
    // An answer that cannot be read says nothing of the agent's other tasks, which are looked at all the same.
    error.store(PAGE, Ordering::SeqCst);
    let (before, mut again) = (looks(), Looked::until(now));
    poll.look(agents(), &mut again, after(60)).await.unwrap();
    assert_eq!((looks() - before, again.behind.len()), (3, 0));
    error.store(NOT_FOUND, Ordering::SeqCst);
    poll.look_now(&ids[0]).await.unwrap();
    let ended = async {
        while !state(&client, &ids[0]).await.is_terminal() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::HANG_GUARD, ended).await.expect("a task that is gone waits for nobody");
    assert_eq!(remote.calls("SendMessage").len(), 3);
    drop(poll);
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test]
async fn what_was_settled_while_no_server_ran_is_seen_by_the_next_one() {
    let is_settled = Arc::new(AtomicUsize::new(0));
    let settled = Arc::clone(&is_settled);
    let remote = Scripted::start(false, move |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": waiting() })),
        "GetTask" if settled.load(Ordering::SeqCst) == 0 => Reply::Result(waiting()),
        "GetTask" => Reply::Result(task("TASK_STATE_COMPLETED", "m")),
        _ => Reply::Error(-32601),
    })
    .await;
    let (data, files) = (folder(), folder());
    far::write_agents(files.path(), &remote);
    let clock = SimulatedClock::at(START);
    let step = Duration::from_millis(500);
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
    let (status, answer) = running.post("/a2a/far/message:send", "ann", &json!({ "message": message })).await;
    assert_eq!((status, &answer["task"]["status"]["state"]), (200, &json!("TASK_STATE_INPUT_REQUIRED")), "{answer}");
    let id = answer["task"]["id"].as_str().unwrap();
    // The first looks, which say that it waits.
    passing(&clock, step, remote.called("GetTask", 2)).await;
    polls(&running).await;
    running.stop().await;
    is_settled.store(1, Ordering::SeqCst);
    clock.advance(Duration::from_secs(3_600));
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    polls(&running).await;
    // It need not wait for the next look, which is up to ten minutes away: no more time passes than until the first round.
    clock.advance(PollSettings::default().first);
    let still = Duration::ZERO;
    far::until_task(&running, still, id, |task| task["status"]["state"] == "TASK_STATE_COMPLETED").await;
    running.stop().await;
}

/// Waits until the poll of a server has begun, so that it sleeps until its next round.
async fn polls(running: &Running) {
    let begun = async {
        loop {
            let (_, state) = running.get("/api/control-plane/state", "ann").await;
            let consumers = state["data"]["consumers"].as_array().unwrap();
            if consumers.iter().any(|one| one["name"] == "remote-poll") {
                return;
            }
        }
    };
    tokio::time::timeout(crate::HANG_GUARD, begun).await.expect("it polls");
}

struct Nothing;

impl RemoteDirectory for Nothing {
    fn remote(&self, _: &AgentName) -> Option<RemoteParts> {
        None
    }
}

/// More tasks like one that waits, made in the store alone.
pub(crate) async fn copies(store: &dyn Store, id: &TaskId, count: usize) {
    let row = store.row(id).await.unwrap().unwrap();
    let rows = store.read(row.key, Seq(0), usize::MAX).await.unwrap();
    let lines: Vec<_> = rows.iter().map(|row| String::from_utf8(row.events.to_vec()).unwrap()).collect();
    let (events, number) = (lines.join("\n"), rows.iter().map(|row| row.count).sum());
    let begin = &id.as_str()[..id.as_str().len() - 12];
    let copy = |index: usize| {
        let new = TaskId::from(format!("{begin}{index:012x}"));
        let task = TaskIdentity { id: new.clone(), ..row.task.clone() };
        store.append(Append {
            guard: AppendGuard::Create(Arc::new(task)),
            events: events.replace(id.as_str(), new.as_str()).into(),
            count: number,
            row: RowPatch::between(&RowState::default(), &row.state),
            snapshot: None,
            note: None,
            sides: SideWrites::default(),
            refusable: false,
        })
    };
    for appended in futures_util::future::join_all((0..count).map(copy)).await {
        appended.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_waiting_tasks_are_rows_and_nothing_more() {
    let remote = asking(&Arc::default()).await;
    let here = tempfile::tempdir().unwrap();
    let start = || {
        let start = || hub_with_grace(here.path(), &remote.url(), Duration::from_secs(60), |_| {});
        tokio::task::block_in_place(start).0
    };
    let front = start();
    let now = SystemClock.now();
    let id = asked(&caller(&front, Version::V1), "one").await;
    copies(&*front.store, &id, 20_000).await;
    tokio::task::block_in_place(|| front.kill());
    let front = start();
    let poll = RemotePoll {
        engine: front.engine.clone(),
        store: front.store.clone(),
        remotes: Arc::new(Nothing),
        settings: PollSettings::default(),
    };
    let mut looked = Looked::until(now);
    poll.look(vec![AgentName::from("front")], &mut looked, Timestamp(now.0 + 3_600_000)).await.unwrap();
    assert_eq!(looked.behind.len(), 0);
    assert_eq!(front.engine.tasks_in_memory(), 0);
    // One that is read is one task in memory.
    let client = caller(&front, Version::V1);
    let one = TaskId::from(format!("{}{:012x}", &id.as_str()[..id.as_str().len() - 12], 19_999));
    assert_eq!(state(&client, &one).await, TaskState::InputRequired);
    assert!(front.engine.tasks_in_memory() <= 1, "{}", front.engine.tasks_in_memory());
    let parked: u64 = front.store.census().await.unwrap().parked.iter().map(|(_, count)| count).sum();
    assert_eq!(parked, 20_001);
    drop(poll);
    tokio::task::block_in_place(|| front.kill());
    goes_on_beside_them(&remote, here.path()).await;
}

/// A server with all that waits takes a message, and a fan-out whose child begins to wait.
async fn goes_on_beside_them(remote: &Scripted, data: &std::path::Path) {
    let files = folder();
    let agents = format!("agents:\n  - name: front\n    url: {}\n  - {{ name: near, builtin: echo }}\n", remote.url());
    std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    // Its time stands still, so that none of them is looked at.
    let clock = SimulatedClock::at(SystemClock.now());
    let running = Running::of_workspace_beside(data, files.path(), &clock, vec![fanout()]).await;
    let message = |id: &str| json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": "go" }] });
    let sent = json!({ "message": message("one more") });
    let (status, answer) = running.post("/a2a/front/message:send", "ann", &sent).await;
    assert_eq!((status, &answer["task"]["status"]["state"]), (200, &json!("TASK_STATE_INPUT_REQUIRED")), "{answer}");
    let mut all = message("all");
    all["metadata"] = json!({ "targets": ["near", "front"] });
    let (status, answer) = running.post("/message:send", "ann", &json!({ "message": all })).await;
    assert_eq!((status, &answer["task"]["status"]["state"]), (200, &json!("TASK_STATE_INPUT_REQUIRED")), "{answer}");
    let path = format!("/api/tasks/{}/tree", answer["task"]["id"].as_str().unwrap());
    let (_, tree) = running.get(&path, "ann").await;
    let below = tree["children"].as_array().unwrap();
    let state = |agent: &str| below.iter().find(|child| child["agent"] == agent).map(|child| child["state"].clone());
    assert_eq!((state("near"), state("front")), (Some(json!("completed")), Some(json!("input_required"))), "{tree}");
    assert!(running.engine.tasks_in_memory() < 20, "{}", running.engine.tasks_in_memory());
    running.stop().await;
}
