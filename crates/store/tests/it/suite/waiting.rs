//! Tasks that a caller has to see to.

use switchboard_a2a::{TaskState, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::hub::HubStore;
use switchboard_engine::store::{Phase, RowState, Store, TaskCounts, TaskRow};

use super::Fixture;
use crate::build::{Writes, claim, done, hidden, inbox, make, owner, parked, row, working};

fn keys(rows: Vec<TaskRow>) -> Vec<TaskKey> {
    rows.into_iter().map(|row| row.key).collect()
}

pub(crate) async fn unowned_tasks_are_unfinished(fixture: impl Fixture) {
    let store = fixture.open();
    let interrupted = RowState { phase: Phase::Interrupted, ..working(1, 1) };
    let (_, queued) = make(&store, "ann", "echo", "c", row(1)).await;
    make(&store, "ann", "echo", "c", working(1, 1)).await;
    let (_, stopped) = make(&store, "ann", "echo", "c", interrupted).await;
    let (_, requeued) = make(&store, "ann", "echo", "c", RowState { phase: Phase::Requeued, ..row(1) }).await;
    make(&store, "ann", "echo", "c", parked(1, 100)).await;
    make(&store, "ann", "echo", "c", done(1, 1)).await;
    let (_, unseen) = make(&store, "ann", "echo", "c", hidden(row(1))).await;
    let live = keys(store.live(TaskKey(0), 10).await.unwrap());
    assert_eq!(live.len(), 6, "all but the one that is done");
    assert!(live.is_sorted() && live.contains(&unseen), "{live:?}");
    assert_eq!(keys(store.live(live[1], 3).await.unwrap()), live[2..5]);
    let all = store.unfinished(TaskKey(0), 10).await.unwrap();
    let phases: Vec<Phase> = all.iter().map(|row| row.state.phase).collect();
    assert_eq!(phases, [Phase::Queued, Phase::Interrupted, Phase::Requeued, Phase::Queued]);
    assert_eq!(keys(all), [queued, stopped, requeued, unseen]);
    assert_eq!(keys(store.unfinished(TaskKey(0), 2).await.unwrap()), [queued, stopped]);
    assert_eq!(keys(store.unfinished(queued, 10).await.unwrap()), [stopped, requeued, unseen]);
    store.write(claim(queued, 1, &["claimed"], working(2, 1))).await.unwrap();
    assert_eq!(keys(store.unfinished(TaskKey(0), 10).await.unwrap()), [stopped, requeued, unseen]);
}

pub(crate) async fn a_restart_voids_leases(fixture: impl Fixture) {
    let store = fixture.open();
    let (_, running) = make(&store, "ann", "echo", "c", working(1, 1)).await;
    make(&store, "ann", "echo", "c", done(1, 1)).await;
    assert!(store.unfinished(TaskKey(0), 10).await.unwrap().is_empty());
    store.close().await.unwrap();
    drop(store);
    let store = fixture.open();
    assert_eq!(keys(store.unfinished(TaskKey(0), 10).await.unwrap()), [running]);
    store.write(claim(running, 1, &["recovered"], working(2, 2))).await.unwrap();
    assert!(store.unfinished(TaskKey(0), 10).await.unwrap().is_empty());
    drop(store);
    assert_eq!(keys(fixture.open().unfinished(TaskKey(0), 10).await.unwrap()), [running]);
}

pub(crate) async fn parked_tasks_expire(fixture: impl Fixture) {
    let store = fixture.open();
    let (_, late) = make(&store, "ann", "echo", "c", parked(1, 300)).await;
    let (_, early) = make(&store, "ann", "echo", "c", parked(1, 100)).await;
    make(&store, "ann", "echo", "c", RowState { expires_at: None, ..parked(1, 0) }).await;
    make(&store, "ann", "echo", "c", RowState { expires_at: Some(Timestamp(5)), ..done(1, 1) }).await;
    let start = (Timestamp(0), TaskKey(0));
    let expired = async |now, after, max| keys(store.expired(Timestamp(now), after, max).await.unwrap());
    assert!(expired(99, start, 10).await.is_empty());
    assert_eq!(expired(100, start, 10).await, [early]);
    assert_eq!(expired(999, start, 10).await, [early, late]);
    assert_eq!(expired(999, start, 1).await, [early]);
    assert_eq!(expired(999, (Timestamp(100), early), 10).await, [late]);
    // At the same time: by key.
    let (_, also_late) = make(&store, "ann", "echo", "c", parked(1, 300)).await;
    assert_eq!(expired(999, (Timestamp(100), early), 10).await, [late, also_late]);
    assert_eq!(expired(999, (Timestamp(300), late), 10).await, [also_late]);
    assert!(expired(999, (Timestamp(300), also_late), 10).await.is_empty());
    store.write(inbox(early, 1, &["answered"], working(2, 1))).await.unwrap();
    assert_eq!(expired(999, start, 10).await, [late, also_late]);
}

pub(crate) async fn the_census_counts_states_and_parked_tasks(fixture: impl Fixture) {
    let store = fixture.open();
    assert_eq!(store.census().await.unwrap(), TaskCounts::default());
    let (_, moving) = make(&store, "ann", "echo", "c", working(1, 1)).await;
    make(&store, "ann", "guide", "c", parked(1, 100)).await;
    make(&store, "ann", "echo", "c", parked(1, 100)).await;
    make(&store, "bob", "echo", "c", parked(1, 100)).await;
    // Asks a question and keeps its turn: not parked.
    make(&store, "bob", "echo", "c", RowState { state: TaskState::InputRequired, ..working(1, 1) }).await;
    make(&store, "bob", "echo", "c", hidden(done(1, 1))).await;
    store.write(owner(moving, 1, &["end"], done(2, 1))).await.unwrap();
    let expected = TaskCounts {
        by_state: vec![(TaskState::Completed, 1), (TaskState::InputRequired, 4)],
        parked: vec![("ann".into(), 2), ("bob".into(), 1)],
    };
    assert_eq!(store.census().await.unwrap(), expected);
    let asked = async |since| store.count_asked_since(Timestamp(since)).await.unwrap();
    assert_eq!((asked(0).await, asked(1).await), (4, 0));
    store.close().await.unwrap();
    drop(store);
    assert_eq!(fixture.open().census().await.unwrap(), expected);
}
