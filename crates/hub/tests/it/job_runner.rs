//! The job runner where a job goes wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use switchboard_a2a::Timestamp;
use switchboard_engine::Settings;
use switchboard_engine::clock::{Clock, SimulatedClock};
use switchboard_engine::store::hub::{Advance, ClaimedJob, HubStore, NewJob};
use switchboard_host::config::Config;
use switchboard_host::config::time_span::TimeSpan;
use switchboard_hub::jobs::{JobKind, JobOutcome, JobRunner, JobSettings};
use switchboard_store::SqliteStore;

use crate::registry_tombstones::{begin, cancel};
use crate::remote::script::{Reply, Scripted, task};
use crate::running::{Running, START, folder};

/// Counts its runs, of which the first one of a job called `bad` panics.
#[derive(Default)]
struct Panicking {
    good: AtomicUsize,
    bad: AtomicUsize,
}

impl JobKind for Panicking {
    fn run<'a>(&'a self, claimed: &'a ClaimedJob) -> BoxFuture<'a, JobOutcome> {
        Box::pin(async move {
            let (runs, is_bad) = match claimed.job.name.as_str() {
                "bad" => (&self.bad, true),
                _ => (&self.good, false),
            };
            let before = runs.fetch_add(1, Ordering::SeqCst);
            assert!(!is_bad || before > 0, "as the test has ordered");
            JobOutcome::Done
        })
    }
}

/// A store that owes jobs.
async fn owing(data: &std::path::Path, names: &[&str]) -> Arc<SqliteStore> {
    let store = Arc::new(SqliteStore::open(data, switchboard_store::Options::default()).unwrap());
    let job = |name: &str| NewJob {
        name: name.to_owned(),
        kind: "test".to_owned(),
        run_at: Timestamp(1_000),
        body: Bytes::from_static(b"{}"),
    };
    let fence = store.take_consumer("test").await.unwrap().fence;
    let advance = Advance {
        consumer: "test".to_owned(),
        fence,
        cursor: None,
        state: Bytes::new(),
        health: Vec::new(),
        jobs: names.iter().map(|name| job(name)).collect(),
        journal: Vec::new(),
    };
    assert!(store.advance(advance).await.unwrap());
    store
}

#[tokio::test]
async fn a_job_that_panics_is_run_again_and_ends_no_other() {
    let (data, clock) = (folder(), SimulatedClock::at(Timestamp(1_000)));
    let store = owing(data.path(), &["bad", "good"]).await;
    let kind = Arc::new(Panicking::default());
    let runner = JobRunner::new(store.clone(), Arc::new(clock.clone())).with("test", kind.clone());
    assert_eq!(runner.run_due().await.unwrap(), 2);
    assert_eq!(runner.run_due().await.unwrap(), 0, "not at once");
    clock.advance(Duration::from_secs(3_600));
    assert_eq!(runner.run_due().await.unwrap(), 1);
    assert_eq!((kind.good.load(Ordering::SeqCst), kind.bad.load(Ordering::SeqCst)), (1, 2));
    assert_eq!(store.owed_jobs().await.unwrap(), []);
}

#[tokio::test]
async fn as_many_jobs_are_run_at_a_time_as_the_setting_says() {
    let (data, clock) = (folder(), SimulatedClock::at(Timestamp(1_000)));
    let store = owing(data.path(), &["one", "two", "three"]).await;
    let kind = Arc::new(Panicking::default());
    let settings = JobSettings { parallel: 2, ..JobSettings::default() };
    let runner = JobRunner::new(store, Arc::new(clock)).with_settings(settings).with("test", kind);
    assert_eq!([runner.run_due().await.unwrap(), runner.run_due().await.unwrap()], [2, 1]);
}

#[tokio::test]
async fn a_cancellation_is_tried_and_given_up_when_the_settings_say() {
    let remote = Scripted::start(false, |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_WORKING", "m") })),
        "GetTask" => Reply::Result(task("TASK_STATE_WORKING", "m")),
        "CancelTask" => Reply::Refuses(-32603, "not now"),
        _ => Reply::Error(-32601),
    })
    .await;
    let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
    let agents = format!("agents:\n  - name: far\n    url: {}\n", remote.url());
    std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    let change = |config: &mut Config| {
        config.hub.projector.flush = TimeSpan::ZERO;
        let jobs = &mut config.hub.jobs;
        (jobs.first, jobs.most, jobs.give_up) =
            (TimeSpan::from_seconds(10), TimeSpan::from_seconds(20), TimeSpan::from_minutes(1));
    };
    let settings = Settings { cancel_grace: Duration::from_secs(1), ..Settings::default() };
    let running = Running::beside(data.path(), files.path(), Vec::new(), &clock, change, settings).await;
    let path = begin(&running).await;
    // Time passes while it ends here.
    let before = clock.now();
    cancel(&running, &path).await;
    let given_up = async {
        loop {
            clock.advance(Duration::from_secs(1));
            let (_, page) = running.get("/api/feed?from=oldest&topic=remote.%23", "ann").await;
            if page["items"].get(0).is_some() {
                return clock.now();
            }
        }
    };
    let at = tokio::time::timeout(crate::HANG_GUARD, given_up).await.expect("it is given up");
    assert!((60_000..3_600_000).contains(&(at.0 - before.0)), "after {} ms", at.0 - before.0);
    assert!(remote.calls("CancelTask").len() > 1, "it was tried again");
    running.stop().await;
}

#[tokio::test]
async fn a_cancellation_that_is_refused_at_length_is_given_up_after_a_day_and_the_agent_left_alone() {
    let words: &'static str = "é".repeat(70_000).leak();
    let remote = Scripted::start(false, move |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_WORKING", "m") })),
        "GetTask" => Reply::Result(task("TASK_STATE_WORKING", "m")),
        "CancelTask" => Reply::Refuses(-32603, words),
        _ => Reply::Error(-32601),
    })
    .await;
    let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
    let agents = format!("agents:\n  - name: far\n    url: {}\n", remote.url());
    std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    let path = begin(&running).await;
    cancel(&running, &path).await;
    let given_up = async {
        loop {
            clock.advance(Duration::from_secs(600));
            let (_, page) = running.get("/api/feed?from=oldest&topic=remote.%23", "ann").await;
            if let Some(item) = page["items"].get(0) {
                return item.clone();
            }
        }
    };
    let item: Value = tokio::time::timeout(crate::HANG_GUARD, given_up).await.expect("it is given up");
    let problem = item["payload"]["problem"].as_str().unwrap();
    assert!(problem.contains('é') && problem.len() <= 1_024, "{} bytes", problem.len());
    assert_eq!((&item["topic"], &item["payload"]["remoteTaskId"]), (&json!("remote.orphaned.far"), &json!("r")));
    let asked = remote.calls("CancelTask").len();
    for _ in 0..20 {
        clock.advance(Duration::from_secs(600));
        running.get("/api/agents", "ann").await;
    }
    assert_eq!(remote.calls("CancelTask").len(), asked, "nothing is owed any more");
    running.stop().await;
}
