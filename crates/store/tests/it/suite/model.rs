//! Random appends on a few tasks against a model that is a list of texts per task.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use switchboard_a2a::TaskId;
use switchboard_engine::ids::{Seq, TaskKey};
use switchboard_engine::store::{Append, RowState, Store, StoreError};

use super::Fixture;
use crate::build::{Writes, create, done, hidden, inbox, new_task, owner, parked, query, row, with_snapshot, working};

/// One step; numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Step {
    Create { row: Row, events: usize },
    Owner { task: usize, fence_off: bool, row: Row, events: usize, snapshot: bool },
    Inbox { task: usize, stale: bool, row: Row, events: usize },
    Reopen,
}

#[derive(Clone, Copy, Debug)]
enum Row {
    Queued,
    Working,
    Parked,
    Hidden,
    Done,
}

#[derive(Default)]
struct Model {
    tasks: Vec<Known>,
}

struct Known {
    id: TaskId,
    key: TaskKey,
    row: RowState,
    events: Vec<String>,
    snapshot_at: usize,
}

fn step() -> impl Strategy<Value = Step> {
    let row = prop_oneof![Just(Row::Queued), Just(Row::Working), Just(Row::Parked), Just(Row::Hidden), Just(Row::Done)];
    prop_oneof![
        2 => (row.clone(), 0..3usize).prop_map(|(row, events)| Step::Create { row, events }),
        6 => (any::<usize>(), prop::bool::weighted(0.1), row.clone(), 0..4usize, any::<bool>())
            .prop_map(|(task, fence_off, row, events, snapshot)| Step::Owner { task, fence_off, row, events, snapshot }),
        3 => (any::<usize>(), prop::bool::weighted(0.2), row, 0..3usize)
            .prop_map(|(task, stale, row, events)| Step::Inbox { task, stale, row, events }),
        1 => Just(Step::Reopen),
    ]
}

/// The row after a step; the time rises with the steps.
fn row_of(row_kind: Row, at: i64, fence: u64) -> RowState {
    match row_kind {
        Row::Queued => row(at),
        Row::Working => working(at, fence),
        Row::Parked => parked(at, at + 10),
        Row::Hidden => hidden(working(at, fence)),
        Row::Done => done(at, fence),
    }
}

pub(crate) async fn random_appends_do_what_a_list_would<F: Fixture>(_: F) {
    // The runner is not async, so each case gets a runtime on a thread of its own.
    let run = || {
        let mut runner = TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
        runner.run(&prop::collection::vec(step(), 1..40), |steps| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(check(F::new(), &steps))
        })
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap()).unwrap();
}

async fn check(fixture: impl Fixture, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut store = fixture.open();
    let mut model = Model::default();
    for (at, step) in (1i64..).zip(steps) {
        if matches!(step, Step::Reopen) {
            drop(store);
            store = fixture.open();
            continue;
        }
        model.step(&store, at, step).await?;
    }
    model.compare(&store).await
}

impl Model {
    async fn step(&mut self, store: &impl Store, at: i64, step: &Step) -> Result<(), TestCaseError> {
        let texts = |count: usize| (0..count).map(|number| format!("{at}-{number}")).collect::<Vec<_>>();
        match *step {
            Step::Create { row, events } => {
                let (task, texts) = (new_task("ann", "echo", "c"), texts(events));
                let row = row_of(row, at, 0);
                let appended = store.write(create(&task, &references(&texts), row.clone())).await.unwrap();
                self.tasks.push(Known { id: task.id, key: appended.key, row, events: texts, snapshot_at: 0 });
                Ok(())
            }
            Step::Owner { task, fence_off, row, events, snapshot } => {
                let Some(known) = self.pick(task) else { return Ok(()) };
                let fence = known.row.fence.0;
                let row = row_of(row, at, fence);
                let texts = texts(events);
                let mut write = owner(known.key, fence + u64::from(fence_off), &references(&texts), row.clone());
                if snapshot {
                    write = with_snapshot(write, &format!("as of {}", known.events.len() + events));
                }
                let refusal = match (known.is_done(), fence_off) {
                    (true, _) => Some(StoreError::Ended),
                    (false, fence_off) => fence_off.then_some(StoreError::Fenced),
                };
                self.apply(store, task, write, texts, row, refusal).await
            }
            Step::Inbox { task, stale, row, events } => {
                let Some(known) = self.pick(task) else { return Ok(()) };
                let row = row_of(row, at, known.row.fence.0 + 1);
                let texts = texts(events);
                let version = known.events.len() as u64 + u64::from(stale);
                let write = inbox(known.key, version, &references(&texts), row.clone());
                let refusal = match (known.is_done(), stale) {
                    (true, _) => Some(StoreError::Ended),
                    (false, stale) => stale.then_some(StoreError::Stale),
                };
                self.apply(store, task, write, texts, row, refusal).await
            }
            Step::Reopen => Ok(()),
        }
    }

    fn pick(&mut self, number: usize) -> Option<&mut Known> {
        let count = self.tasks.len();
        if count == 0 { None } else { self.tasks.get_mut(number % count) }
    }

    async fn apply(
        &mut self,
        store: &impl Store,
        task: usize,
        write: Append,
        texts: Vec<String>,
        row: RowState,
        refusal: Option<StoreError>,
    ) -> Result<(), TestCaseError> {
        let snapshot = write.snapshot.is_some();
        let result = store.write(write).await;
        if let Some(refusal) = refusal {
            prop_assert_eq!(result.unwrap_err().to_string(), refusal.to_string());
            return Ok(());
        }
        let Some(known) = self.pick(task) else { return Ok(()) };
        prop_assert_eq!(result.unwrap().first_seq.0, known.events.len() as u64 + 1);
        known.events.extend(texts);
        known.row = row;
        if snapshot {
            known.snapshot_at = known.events.len();
        }
        Ok(())
    }

    async fn compare(&self, store: &impl Store) -> Result<(), TestCaseError> {
        for known in &self.tasks {
            let loaded = store.load(&known.id).await.unwrap().unwrap();
            prop_assert_eq!(&loaded.row.state, &known.row);
            prop_assert_eq!(loaded.row.last_seq.0, known.events.len() as u64);
            let as_of = loaded.snapshot.as_ref().map_or(0, |(seq, _, _)| seq.0);
            prop_assert_eq!(as_of, known.snapshot_at as u64);
            prop_assert_eq!(lines(&loaded.events), &known.events[known.snapshot_at..]);
            prop_assert_eq!(lines(&store.read(known.key, Seq(0), usize::MAX).await.unwrap()), &known.events[..]);
        }
        let mut shown: Vec<_> = self.tasks.iter().filter(|known| !known.row.hidden).collect();
        shown.sort_by_key(|known| std::cmp::Reverse((known.row.status_at, known.key)));
        let page = store.list(query("ann")).await.unwrap();
        prop_assert_eq!(page.total, shown.len() as u64);
        let listed: Vec<_> = page.places.iter().map(|(_, key)| *key).collect();
        prop_assert_eq!(listed, shown.iter().map(|known| known.key).collect::<Vec<_>>());
        Ok(())
    }
}

impl Known {
    fn is_done(&self) -> bool {
        self.row.phase == switchboard_engine::store::Phase::Done
    }
}

fn references(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

fn lines(rows: &[switchboard_engine::store::EventRow]) -> Vec<String> {
    let text = |row: &switchboard_engine::store::EventRow| String::from_utf8(row.events.to_vec()).unwrap();
    rows.iter().flat_map(|row| text(row).lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}
