//! Remote agents that refuse to cancel: a refusal does not say that the task has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::json;
use switchboard_a2a::{TaskState, Timestamp, Version};
use switchboard_client::{CallContext, Client, Credentials, Peer, Secret, egress};
use switchboard_engine::clock::{Clock, SimulatedClock};
use switchboard_engine::store::Store;
use switchboard_engine::store::feed::Position;
use switchboard_engine::store::hub::{ClaimedJob, NewJob};
use switchboard_hub::jobs::{CANCEL_KIND, CancelJobs, JobKind, JobOutcome, JobRunner, JobSettings};
use switchboard_hub::registry::{BreakerSettings, CircuitBreaker, RequestOutcome, RequestSource};
use switchboard_hub::remote::RemoteParts;
use switchboard_store::{Durability, Options, SqliteStore};
use tokio_util::sync::CancellationToken;

use super::owed::{One, begun, owe, owed};
use super::script::{Reply, Scripted, task};
use super::world::{caller, hub_with_grace, passing};

const NOT_FOUND: i64 = -32001;
const NOT_CANCELABLE: i64 = -32002;
const UNSUPPORTED: i64 = -32004;
const INTERNAL: i64 = -32603;

/// The remote task has ended.
const ENDED: i64 = 1;

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_task_is_canceled_again_until_it_has_ended_whatever_the_agent_answers() {
    let (cancels, gets) = (Arc::new(AtomicI64::new(INTERNAL)), Arc::new(AtomicI64::new(0)));
    let (says, knows) = (Arc::clone(&cancels), Arc::clone(&gets));
    let remote = Scripted::start(false, move |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_WORKING", "m") })),
        "GetTask" => match knows.load(Ordering::SeqCst) {
            0 => Reply::Result(task("TASK_STATE_WORKING", "m")),
            ENDED => Reply::Result(task("TASK_STATE_COMPLETED", "m")),
            code => Reply::Error(code),
        },
        "CancelTask" => Reply::Refuses(says.load(Ordering::SeqCst), "not for Bearer abcdef0123456789"),
        _ => Reply::Error(-32601),
    })
    .await;
    let here = tempfile::tempdir().unwrap();
    let clock = SimulatedClock::at(Timestamp(1_000));
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let breaker = BreakerSettings { failures: 2, open: Duration::from_secs(60) };
    let breaker = Arc::new(CircuitBreaker::new(breaker, Arc::clone(&shared), |_| {}));
    let start = || hub_with_grace(here.path(), &remote.url(), Duration::from_millis(20), |_| {});
    let (front, parts) = tokio::task::block_in_place(start);
    let client = caller(&front, Version::V1);
    let id = begun(&client, "go").await;
    let canceled = client.cancel(&CallContext::default(), &id, None).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    let job = owed(&front, &id).await.expect("the remote has not said that it has ended");
    let parts = RemoteParts { breaker: Arc::clone(&breaker), ..parts };
    let (engine, store) = (front.engine.clone(), front.store.clone());
    let cancel = CancelJobs {
        engine,
        remotes: Arc::new(One(parts)),
        store: store.clone(),
        clock: Arc::clone(&shared),
        settings: JobSettings::default(),
    };
    let runner = JobRunner::new(store.clone(), Arc::clone(&shared)).with(CANCEL_KIND, Arc::new(cancel));
    owe(&*store, job.clone()).await;
    for (says, knows) in [(INTERNAL, 0), (UNSUPPORTED, 0), (NOT_CANCELABLE, 0), (INTERNAL, INTERNAL)] {
        cancels.store(says, Ordering::SeqCst);
        gets.store(knows, Ordering::SeqCst);
        assert_eq!(runner.run_due().await.unwrap(), 1, "{says}: it was not done before");
        clock.advance(Duration::from_secs(10));
    }
    // An agent whose breaker is open is not asked.
    let asked = || remote.calls("CancelTask").len() + remote.calls("GetTask").len();
    (0..2).for_each(|_| breaker.allow().unwrap().record(RequestSource::Probe, RequestOutcome::Failed));
    let before = asked();
    assert_eq!((runner.run_due().await.unwrap(), asked()), (1, before));
    clock.advance(Duration::from_secs(70));
    // One that has ended is not owed any more.
    for (says, knows) in [(NOT_CANCELABLE, ENDED), (UNSUPPORTED, NOT_FOUND), (NOT_FOUND, 0)] {
        cancels.store(says, Ordering::SeqCst);
        gets.store(knows, Ordering::SeqCst);
        assert_eq!(runner.run_due().await.unwrap(), 1, "{says}");
        clock.advance(Duration::from_secs(4_000));
        assert_eq!(runner.run_due().await.unwrap(), 0, "{says}: it is done");
        owe(&*store, NewJob { run_at: shared.now(), ..job.clone() }).await;
    }
    // What refuses for a day is left, and the journal says so.
    cancels.store(UNSUPPORTED, Ordering::SeqCst);
    gets.store(0, Ordering::SeqCst);
    clock.advance(Duration::from_secs(24 * 3_600));
    assert_eq!(runner.run_due().await.unwrap(), 1);
    let rows = front.store.read_all(Position::default(), 10_000, usize::MAX).await.unwrap().rows;
    let rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
    let lines: Vec<&String> = rows.iter().filter(|row| row.contains("remote.orphaned.front")).collect();
    let [line] = lines[..] else { panic!("{lines:?}") };
    assert!(line.contains("not for Bearer ***") && !line.contains("abcdef"), "it is no secret: {line}");
    drop(runner);
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_all_are_told_of_an_orphaned_task_names_no_address_and_no_variable() {
    const VARIABLE: &str = "SWITCHBOARD_TEST_UNSET";
    let is_gone = Arc::new(AtomicBool::new(false));
    let gone = Arc::clone(&is_gone);
    let remote = Scripted::start(false, move |asked, _| match asked.method() {
        _ if gone.load(Ordering::SeqCst) => Reply::Closes,
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_WORKING", "m") })),
        "GetTask" => Reply::Result(task("TASK_STATE_WORKING", "m")),
        _ => Reply::Error(INTERNAL),
    })
    .await;
    let here = tempfile::tempdir().unwrap();
    let start = || hub_with_grace(here.path(), &remote.url(), Duration::from_millis(20), |_| {});
    let (front, parts) = tokio::task::block_in_place(start);
    let client = caller(&front, Version::V1);
    let id = begun(&client, "go").await;
    client.cancel(&CallContext::default(), &id, None).await.unwrap();
    let job = owed(&front, &id).await.expect("the remote has not said that it has ended");
    // It has ended a day ago, so the first refusal is the last.
    let shared: Arc<dyn Clock> = Arc::new(SimulatedClock::at(Timestamp(1_000 + 24 * 3_600_000)));
    let given_up = async |parts: RemoteParts| {
        let (engine, store) = (front.engine.clone(), front.store.clone());
        let remotes = Arc::new(One(parts));
        let cancel = CancelJobs {
            engine,
            remotes,
            store: store.clone(),
            clock: Arc::clone(&shared),
            settings: JobSettings::default(),
        };
        let runner = JobRunner::new(store.clone(), Arc::clone(&shared)).with(CANCEL_KIND, Arc::new(cancel));
        owe(&*store, NewJob { run_at: shared.now(), ..job.clone() }).await;
        assert_eq!(runner.run_due().await.unwrap(), 1);
        let rows = store.read_all(Position::default(), 10_000, usize::MAX).await.unwrap().rows;
        let rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
        let last = |topic: &str| rows.iter().rfind(|row| row.contains(topic)).cloned().unwrap_or_default();
        (last("remote.orphaned.front"), last("audit.agents.orphaned"))
    };
    let mut peer = Peer::new(remote.url());
    peer.credentials = Credentials::Bearer(Secret::Environment(VARIABLE.to_owned()));
    let keyless = RemoteParts { client: Client::new(egress().unwrap(), peer).unwrap(), ..parts.clone() };
    let breaker = BreakerSettings { failures: 2, open: Duration::from_secs(60) };
    let breaker = Arc::new(CircuitBreaker::new(breaker, Arc::clone(&shared), |_| {}));
    (0..2).for_each(|_| breaker.allow().unwrap().record(RequestSource::Probe, RequestOutcome::Failed));
    let without_key = given_up(keyless).await;
    let left_alone = given_up(RemoteParts { breaker, ..parts.clone() }).await;
    is_gone.store(true, Ordering::SeqCst);
    let away = given_up(parts).await;
    for ((shown, audited), told, whole) in [
        (without_key, "it cannot be called as it is configured here", VARIABLE),
        (left_alone, "its circuit breaker is open", "is open for another"),
        (away, "the connection to it was lost", "lost"),
    ] {
        assert!(shown.contains(told) && !shown.contains(VARIABLE), "{told}: {shown}");
        assert!(!shown.contains("://") && !shown.contains("127.0.0.1"), "{shown}");
        assert!(audited.contains(whole) && audited.contains(&remote.url()), "{audited}");
    }
    tokio::task::block_in_place(|| front.kill());
}

/// Jobs of the lane `slow` never end; others do.
struct Slow(Arc<AtomicUsize>);

impl JobKind for Slow {
    fn run<'a>(&'a self, claimed: &'a ClaimedJob) -> BoxFuture<'a, JobOutcome> {
        let is_slow = self.lane(claimed).is_some();
        Box::pin(async move {
            if is_slow {
                return std::future::pending().await;
            }
            self.0.fetch_add(1, Ordering::SeqCst);
            JobOutcome::Done
        })
    }

    fn lane(&self, claimed: &ClaimedJob) -> Option<String> {
        claimed.job.name.starts_with("slow").then(|| "slow".to_owned())
    }
}

#[tokio::test]
async fn jobs_of_an_agent_that_never_answers_hold_up_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::Process, ..Options::default() };
    let store = Arc::new(SqliteStore::open(folder.path(), options).unwrap());
    let clock = SimulatedClock::at(Timestamp(1_000));
    let job = |name: String, run_at: i64| NewJob {
        name,
        kind: "test".to_owned(),
        run_at: Timestamp(run_at),
        body: bytes::Bytes::new(),
    };
    // More of the slow ones than there are places, and they are due first.
    for number in 0..50 {
        owe(&*store, job(format!("slow-{number}"), 1)).await;
        owe(&*store, job(format!("quick-{number}"), 2)).await;
    }
    let done = Arc::new(AtomicUsize::new(0));
    let runner = JobRunner::new(store.clone(), Arc::new(clock.clone())).with("test", Arc::new(Slow(Arc::clone(&done))));
    let all_done = async {
        while done.load(Ordering::SeqCst) < 50 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = runner.run(CancellationToken::new()) => unreachable!("it was not stopped"),
        () = passing(&clock, Duration::from_millis(100), all_done) => {}
    }
}
