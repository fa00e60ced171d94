//! What consumers of the log keep: cursors with what follows from them, jobs, registrations, cooldowns.

use bytes::Bytes;
use switchboard_a2a::{TaskState, Timestamp};
use switchboard_engine::ids::{Epoch, Fence, Seq};
use switchboard_engine::store::feed::{FeedCursor, FeedStart, JournalLine, Position};
use switchboard_engine::store::hub::{
    Advance, CONSUMER_STATE_BYTES, HealthBy, HealthSeries, HealthStep, HealthSum, HubStore, JobEnd, NewJob,
    PutRegistration,
};
use switchboard_engine::store::{Store, StoreError};

use super::Fixture;
use super::feed::line;
use crate::build::{create, done, make, new_task, refused, row, scope, with_cooldown, with_send, working};

pub(crate) fn job(name: &str, run_at: i64) -> NewJob {
    NewJob {
        name: name.to_owned(),
        kind: "fire".to_owned(),
        run_at: Timestamp(run_at),
        body: Bytes::from_static(b"{}"),
    }
}

fn cursor(row: i64) -> FeedCursor {
    FeedCursor { epoch: Epoch(1), position: Position { major: 0, row, seq: Seq(1) } }
}

/// A page that ends at a row, with one sum, one job and one line.
pub(crate) fn page(fence: Fence, row: i64) -> Advance {
    let sum = HealthSum {
        step: HealthStep::Minute,
        at: Timestamp(row),
        agent: "echo".into(),
        by: HealthBy::Skill,
        name: "greet".to_owned(),
        sum: Bytes::from(format!("sum {row}")),
    };
    Advance {
        consumer: "projector".to_owned(),
        fence,
        cursor: Some(cursor(row)),
        state: Bytes::from(format!("state {row}")),
        health: vec![sum],
        jobs: vec![job(&format!("job {row}"), row)],
        journal: vec![line("hub.page", row, "{}")],
    }
}

pub(crate) async fn a_page_is_written_once_with_all_that_follows_from_it(fixture: impl Fixture) {
    let store = fixture.open();
    let taken = store.take_consumer("projector").await.unwrap();
    assert_eq!((taken.cursor, taken.state.len()), (None, 0));
    assert!(store.advance(page(taken.fence, 5)).await.unwrap());
    let lines = async || store.read_all(Position::default(), 100, usize::MAX).await.unwrap().rows.len();
    assert_eq!(lines().await, 1);
    for row in [5, 4] {
        assert!(!store.advance(page(taken.fence, row)).await.unwrap(), "row {row} was read before");
    }
    assert_eq!(lines().await, 1);
    // Another process takes over where this one was, and this one writes no more.
    let next = store.take_consumer("projector").await.unwrap();
    assert!(next.fence > taken.fence);
    assert_eq!((next.cursor, &next.state[..]), (Some(cursor(5)), b"state 5".as_slice()));
    refused(store.advance(page(taken.fence, 6)).await, &StoreError::ConsumerTaken("projector".to_owned()));
    assert!(store.advance(page(next.fence, 6)).await.unwrap());
    let stranger = Advance { consumer: "stranger".to_owned(), ..page(Fence(1), 9) };
    refused(store.advance(stranger).await, &StoreError::ConsumerTaken("stranger".to_owned()));
    let state = Bytes::from(vec![0; CONSUMER_STATE_BYTES + 1]);
    let too_large = store.advance(Advance { state, ..page(next.fence, 7) }).await;
    assert!(matches!(too_large, Err(StoreError::TooLarge { .. })), "{too_large:?}");
    // A consumer that reads no rows has a state alone.
    let only_state = Advance { cursor: None, jobs: Vec::new(), journal: Vec::new(), ..page(next.fence, 8) };
    assert!(store.advance(only_state).await.unwrap());

    drop(store);
    let store = fixture.open();
    let found = store.take_consumer("projector").await.unwrap();
    assert_eq!((found.cursor, &found.state[..]), (Some(cursor(6)), b"state 8".as_slice()));
    assert_eq!(lines_of(&store).await, 2);
    let sums = store.health(HealthStep::Minute, Timestamp(6)).await.unwrap();
    assert_eq!(sums.iter().map(|sum| &sum.sum[..]).collect::<Vec<_>>(), [b"sum 6".as_slice(), b"sum 8"]);
    assert_eq!(store.health(HealthStep::Hour, Timestamp(0)).await.unwrap(), []);
    // The oldest go first, and only those of the step.
    assert_eq!(store.evict_health(HealthStep::Hour, Timestamp(99), 9).await.unwrap(), 0);
    for (before, deleted) in [(8, 1), (8, 1), (8, 0)] {
        assert_eq!(store.evict_health(HealthStep::Minute, Timestamp(before), 1).await.unwrap(), deleted);
    }
    let left = store.health(HealthStep::Minute, Timestamp(0)).await.unwrap();
    assert_eq!(left.iter().map(|sum| sum.at).collect::<Vec<_>>(), [Timestamp(8)]);
    let jobs = store.claim_jobs(Timestamp(99), 99).await.unwrap();
    assert_eq!(jobs.iter().map(|claimed| claimed.job.name.as_str()).collect::<Vec<_>>(), ["job 5", "job 6"]);
}

async fn lines_of(store: &impl Store) -> usize {
    store.read_all(Position::default(), 100, usize::MAX).await.unwrap().rows.len()
}

pub(crate) async fn a_job_is_claimed_once_and_finished_by_its_claimer(fixture: impl Fixture) {
    let store = fixture.open();
    let fence = store.take_consumer("projector").await.unwrap().fence;
    let jobs = vec![job("late", 300), job("first", 100), job("second", 200)];
    store.advance(Advance { jobs, ..page(fence, 1) }).await.unwrap();
    let again = vec![NewJob { body: Bytes::from_static(b"other"), ..job("first", 50) }];
    store.advance(Advance { jobs: again, ..page(fence, 2) }).await.unwrap();
    let claim = async |now, max| {
        let claimed = store.claim_jobs(Timestamp(now), max).await.unwrap();
        claimed.into_iter().map(|claimed| (claimed.job.name, claimed.attempts)).collect::<Vec<_>>()
    };
    assert_eq!(claim(99, 9).await, [], "of a name that is taken there is no second one");
    assert_eq!(claim(250, 1).await, [("first".to_owned(), 1)]);
    assert_eq!(claim(250, 9).await, [("second".to_owned(), 1)]);
    assert_eq!(claim(250, 9).await, []);
    assert!(!store.finish_job("first", 2, JobEnd::Done).await.unwrap(), "not by another claim");
    assert!(store.finish_job("first", 1, JobEnd::Done).await.unwrap());
    assert!(!store.finish_job("first", 1, JobEnd::Done).await.unwrap());
    let body = Some(Bytes::from_static(b"next"));
    assert!(store.finish_job("second", 1, JobEnd::Again { run_at: Timestamp(400), body }).await.unwrap());
    assert_eq!(claim(399, 9).await, [("late".to_owned(), 1)]);
    // What a run tells is written with its end, and only if its claim holds.
    let told = |text: &str| JobEnd::Told {
        run_at: Timestamp(300),
        body: Bytes::from_static(b"{}"),
        journal: vec![JournalLine {
            at: Timestamp(399),
            owner: None,
            task: None,
            topic: text.to_owned(),
            payload: Bytes::from_static(b"{}"),
        }],
    };
    let before = lines_of(&store).await;
    assert!(!store.finish_job("late", 7, told("lost")).await.unwrap());
    assert_eq!(lines_of(&store).await, before);
    assert!(store.finish_job("late", 1, told("kept")).await.unwrap());
    assert_eq!(lines_of(&store).await, before + 1);
    assert_eq!(claim(399, 9).await, [("late".to_owned(), 2)]);
    // A job whose node is gone may be claimed again.
    drop(store);
    let store = fixture.open();
    let claimed = store.claim_jobs(Timestamp(400), 9).await.unwrap();
    let found: Vec<_> = claimed.iter().map(|job| (job.job.name.as_str(), &job.job.body[..], job.attempts)).collect();
    assert_eq!(found, [("late", b"{}".as_slice(), 3), ("second", b"next", 2)]);
    assert!(!store.finish_job("late", 2, JobEnd::Done).await.unwrap());
    assert!(store.finish_job("late", 3, JobEnd::Done).await.unwrap());
}

pub(crate) async fn a_job_that_is_owed_again_while_it_runs_is_run_again(fixture: impl Fixture) {
    let store = fixture.open();
    let fence = store.take_consumer("projector").await.unwrap().fence;
    let owe = async |row, job: NewJob| {
        assert!(store.advance(Advance { jobs: vec![job], ..page(fence, row) }).await.unwrap());
    };
    let claim = async |now| {
        let claimed = store.claim_jobs(Timestamp(now), 9).await.unwrap();
        claimed.into_iter().map(|claimed| (claimed.job.name, claimed.attempts)).collect::<Vec<_>>()
    };
    let name = || "settle".to_owned();
    owe(1, job("settle", 100)).await;
    assert_eq!(claim(100).await, [(name(), 1)]);
    owe(2, job("settle", 150)).await;
    assert_eq!(claim(149).await, []);
    assert_eq!(claim(150).await, [(name(), 2)]);
    for end in [JobEnd::Done, JobEnd::Again { run_at: Timestamp(900), body: None }] {
        assert!(!store.finish_job("settle", 1, end).await.unwrap(), "the first run does not end the second");
    }
    // The same before it is claimed again.
    owe(3, job("settle", 200)).await;
    assert!(!store.finish_job("settle", 2, JobEnd::Done).await.unwrap());
    assert_eq!(claim(200).await, [(name(), 3)]);
    // One that waits for its time is not hurried on.
    let later = JobEnd::Again { run_at: Timestamp(500), body: None };
    assert!(store.finish_job("settle", 3, later).await.unwrap());
    owe(4, job("settle", 300)).await;
    assert_eq!(claim(499).await, []);
    assert_eq!(claim(500).await, [(name(), 4)]);
    // A run that was lost with its process changes nothing of it.
    drop(store);
    let store = fixture.open();
    let fence = store.take_consumer("projector").await.unwrap().fence;
    let again = Advance { jobs: vec![job("settle", 600)], ..page(fence, 5) };
    assert!(store.advance(again).await.unwrap());
    let claimed = store.claim_jobs(Timestamp(600), 9).await.unwrap();
    assert_eq!(claimed.iter().map(|claimed| claimed.attempts).collect::<Vec<_>>(), [5]);
    assert!(store.finish_job("settle", 5, JobEnd::Done).await.unwrap());
    assert_eq!(store.owed_jobs().await.unwrap(), []);
}

pub(crate) async fn jobs_without_a_time_are_found_and_deleted_by_their_names(fixture: impl Fixture) {
    let store = fixture.open();
    let fence = store.take_consumer("projector").await.unwrap().fence;
    let names = ["match:a:2", "match:a:1", "match:b:1", "match:a", "match:aa:1", "match:a:ü"];
    let jobs = names.map(|name| job(name, i64::MAX)).to_vec();
    store.advance(Advance { jobs, ..page(fence, 1) }).await.unwrap();
    assert_eq!(store.claim_jobs(Timestamp(i64::MAX - 1), 9).await.unwrap(), [], "their time never comes");
    let named = async |prefix: &str, after: &str, max| {
        let found = store.jobs_named(prefix, after, max).await.unwrap();
        found.into_iter().map(|found| found.name).collect::<Vec<_>>()
    };
    assert_eq!(named("match:a:", "", 9).await, ["match:a:1", "match:a:2", "match:a:ü"]);
    assert_eq!(named("match:a:", "match:a:1", 1).await, ["match:a:2"]);
    assert_eq!(named("match:b:", "match:a:1", 9).await, ["match:b:1"]);
    assert_eq!(store.jobs_named("match:b:", "", 9).await.unwrap(), [job("match:b:1", i64::MAX)]);
    assert_eq!(store.count_jobs_named("match:a:").await.unwrap(), 3);
    assert_eq!(store.count_jobs_named("match:").await.unwrap(), 6);
    assert_eq!(store.count_jobs_named("other").await.unwrap(), 0);
    let removed = ["match:a:1", "match:a:9", "match:aa:1"].map(str::to_owned).to_vec();
    assert_eq!(store.remove_jobs(removed).await.unwrap(), 2);
    drop(store);
    let store = fixture.open();
    assert_eq!(store.count_jobs_named("match:").await.unwrap(), 4);
}

pub(crate) async fn a_registration_is_replaced_by_one_that_knows_its_version(fixture: impl Fixture) {
    let store = fixture.open();
    let put = |name: &str, expected_version, body: Option<&'static str>| PutRegistration {
        kind: "agent".to_owned(),
        name: name.to_owned(),
        expected_version,
        owner: "ann".into(),
        at: Timestamp(5),
        body: body.map(|body| Bytes::from_static(body.as_bytes())),
        job: Some(job(name, 10)),
        journal: vec![line("hub.agent.changed", 5, "{}")],
    };
    let conflict = |current| StoreError::VersionConflict { current };
    refused(store.put_registration(put("one", 1, Some("{}"))).await, &conflict(0));
    assert_eq!(lines_of(&store).await, 0, "a refusal leaves nothing");
    assert_eq!(store.put_registration(put("one", 0, Some("1"))).await.unwrap(), 1);
    refused(store.put_registration(put("one", 0, Some("other"))).await, &conflict(1));
    assert_eq!(store.put_registration(put("one", 1, Some("2"))).await.unwrap(), 2);
    assert_eq!(store.put_registration(put("two", 0, Some("3"))).await.unwrap(), 1);
    assert_eq!(store.claim_jobs(Timestamp(99), 9).await.unwrap().len(), 2, "the second replaced the first");
    let names = async |kind: &str, after: &str, max| {
        let found = store.registrations(kind, after, max).await.unwrap();
        found.into_iter().map(|found| (found.name, found.version)).collect::<Vec<_>>()
    };
    let (one, two) = (("one".to_owned(), 2), ("two".to_owned(), 1));
    assert_eq!(names("agent", "", 9).await, [one.clone(), two.clone()]);
    assert_eq!((names("agent", "", 1).await, names("agent", "one", 9).await), (vec![one], vec![two.clone()]));
    assert_eq!(names("route", "", 9).await, []);
    // A deleted one leaves its version behind, so that what was decided about it counts no more.
    assert_eq!(store.put_registration(put("one", 2, None)).await.unwrap(), 3);
    assert_eq!(names("agent", "", 9).await, [two]);
    refused(store.put_registration(put("one", 3, Some("4"))).await, &conflict(0));
    assert_eq!(store.put_registration(put("one", 0, Some("4"))).await.unwrap(), 4);
    assert_eq!(lines_of(&store).await, 5);
}

pub(crate) async fn a_cooldown_is_taken_with_an_append_and_refuses_the_next(fixture: impl Fixture) {
    let store = fixture.open();
    let send = |key: &str| with_send(create(&new_task("ann", "echo", "c"), &["made"], done(1, 1)), "ann", "echo", key);
    store.append(with_cooldown(send("1"), "triage repo#1", 100, 130)).await.unwrap();
    let until = StoreError::CoolingDown { key: "triage repo#1".to_owned(), until: Timestamp(130) };
    refused(store.append(with_cooldown(send("2"), "triage repo#1", 129, 200)).await, &until);
    assert!(store.find_send(scope("ann", "echo", "2")).await.unwrap().is_none(), "a refusal leaves nothing");
    store.append(with_cooldown(send("2"), "triage repo#2", 129, 200)).await.unwrap();
    // An append that is refused for another reason takes none.
    refused(store.append(with_cooldown(send("2"), "triage repo#3", 129, 200)).await, &StoreError::KeyTaken);
    store.append(with_cooldown(send("3"), "triage repo#3", 129, 200)).await.unwrap();
    store.append(with_cooldown(send("4"), "triage repo#1", 130, 160)).await.unwrap();
    drop(store);
    let store = fixture.open();
    let until = StoreError::CoolingDown { key: "triage repo#1".to_owned(), until: Timestamp(160) };
    refused(store.append(with_cooldown(send("5"), "triage repo#1", 159, 200)).await, &until);
    let fresh = create(&new_task("ann", "echo", "c"), &["made"], row(1));
    store.append(fresh).await.unwrap();
    assert!(!store.locate(FeedStart::Now).await.unwrap().is_gap);
}

pub(crate) async fn sums_jobs_and_tasks_are_counted_for_their_readers(fixture: impl Fixture) {
    let store = fixture.open();
    let fence = store.take_consumer("projector").await.unwrap().fence;
    for row in [3, 5, 8] {
        store.advance(page(fence, row)).await.unwrap();
    }
    let series =
        HealthSeries { step: HealthStep::Minute, agent: "echo".into(), by: HealthBy::Skill, name: "greet".to_owned() };
    let read = async |series: HealthSeries, since, max| {
        let sums = store.health_series(series, Timestamp(since), max).await.unwrap();
        sums.into_iter().map(|(at, sum)| (at.0, String::from_utf8(sum.to_vec()).unwrap())).collect::<Vec<_>>()
    };
    let sum = |row: i64| (row, format!("sum {row}"));
    assert_eq!(read(series.clone(), 4, 10).await, [sum(5), sum(8)]);
    assert_eq!(read(series.clone(), 0, 1).await, [sum(3)]);
    assert_eq!(read(HealthSeries { by: HealthBy::All, ..series.clone() }, 0, 10).await, []);
    assert_eq!(read(HealthSeries { agent: "nobody".into(), ..series }, 0, 10).await, []);

    assert_eq!(store.owed_jobs().await.unwrap(), [("fire".to_owned(), 3)]);
    let claimed = store.claim_jobs(Timestamp(3), 10).await.unwrap();
    store.finish_job(&claimed[0].job.name, claimed[0].attempts, JobEnd::Done).await.unwrap();
    assert_eq!(store.owed_jobs().await.unwrap(), [("fire".to_owned(), 2)]);

    make(&store, "ann", "echo", "c", done(1, 1)).await;
    make(&store, "ann", "guide", "c", working(1, 1)).await;
    make(&store, "bob", "echo", "c", working(1, 1)).await;
    let count = async |owner: Option<&str>, agents: Option<&[&str]>| {
        let agents = agents.map(|agents| agents.iter().map(|name| (*name).into()).collect());
        store.count_tasks(owner.map(Into::into), agents).await.unwrap()
    };
    let (working, completed) = (TaskState::Working, TaskState::Completed);
    assert_eq!(count(None, None).await, [(working, 2), (completed, 1)]);
    assert_eq!(count(Some("ann"), None).await, [(working, 1), (completed, 1)]);
    assert_eq!(count(None, Some(&["echo", "nobody"])).await, [(working, 1), (completed, 1)]);
    assert_eq!(count(Some("bob"), Some(&["guide"])).await, []);
    assert_eq!(count(Some("cat"), None).await, []);
}
