//! Short ways to write appends, so that a test shows only what it is about.

use bytes::Bytes;
use switchboard_a2a::{TaskId, TaskState, Timestamp};
use switchboard_engine::ids::{Fence, Seq, TaskKey};
use switchboard_engine::store::{
    Append, Guard, ListQuery, NewTask, Phase, RowState, SendRecord, SendScope, Store, StoreError,
};

/// A task's row: Submitted and Queued until told otherwise.
pub(crate) fn row(at: i64) -> RowState {
    RowState {
        state: TaskState::Submitted,
        status_at: Timestamp(at),
        phase: Phase::Queued,
        fence: Fence(0),
        expires_at: None,
        hidden: false,
        recoveries: 0,
    }
}

pub(crate) fn working(at: i64, fence: u64) -> RowState {
    RowState { state: TaskState::Working, phase: Phase::Running, fence: Fence(fence), ..row(at) }
}

pub(crate) fn done(at: i64, fence: u64) -> RowState {
    RowState { state: TaskState::Completed, phase: Phase::Done, fence: Fence(fence), ..row(at) }
}

pub(crate) fn parked(at: i64, expires_at: i64) -> RowState {
    let expires_at = Some(Timestamp(expires_at));
    RowState { state: TaskState::InputRequired, phase: Phase::Parked, expires_at, ..row(at) }
}

pub(crate) fn hidden(row: RowState) -> RowState {
    RowState { hidden: true, ..row }
}

pub(crate) fn new_task(owner: &str, agent: &str, context: &str) -> NewTask {
    NewTask { id: TaskId::generate(), owner: owner.into(), agent: agent.into(), context: context.into() }
}

/// An append of events, one per text.
pub(crate) fn append(guard: Guard, events: &[&str], row: RowState) -> Append {
    Append {
        guard,
        events: Bytes::from(events.join("\n")),
        count: u32::try_from(events.len()).unwrap(),
        row,
        snapshot: None,
        send: None,
        refusable: false,
    }
}

pub(crate) fn create(task: &NewTask, events: &[&str], row: RowState) -> Append {
    append(Guard::Create(task.clone()), events, row)
}

pub(crate) fn owner(key: TaskKey, fence: u64, events: &[&str], row: RowState) -> Append {
    append(Guard::Owner { key, fence: Fence(fence) }, events, row)
}

pub(crate) fn inbox(key: TaskKey, version: u64, events: &[&str], row: RowState) -> Append {
    append(Guard::Inbox { key, version: Seq(version) }, events, row)
}

pub(crate) fn with_snapshot(append: Append, snapshot: &str) -> Append {
    Append { snapshot: Some(Bytes::copy_from_slice(snapshot.as_bytes())), ..append }
}

pub(crate) fn with_send(append: Append, owner: &str, address: &str, key: &str) -> Append {
    let send = SendRecord { scope: scope(owner, address, key), digest: [7; 32], task: None, seq: Seq(0) };
    Append { send: Some(send), ..append }
}

pub(crate) fn scope(owner: &str, address: &str, key: &str) -> SendScope {
    SendScope { owner: owner.into(), address: address.to_owned(), key: key.to_owned() }
}

/// Creates a task with one event; its name and key.
pub(crate) async fn make(
    store: &impl Store,
    owner: &str,
    agent: &str,
    context: &str,
    row: RowState,
) -> (TaskId, TaskKey) {
    let task = new_task(owner, agent, context);
    let appended = store.append(create(&task, &["made"], row)).await.unwrap();
    (task.id, appended.key)
}

/// All of an owner's tasks.
pub(crate) fn query(owner: &str) -> ListQuery {
    ListQuery { owner: owner.into(), agents: None, context: None, state: None, since: None, after: None, page_size: 50 }
}

/// Compares errors by their words, which name every variant.
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, StoreError>, expected: &StoreError) {
    assert_eq!(result.unwrap_err().to_string(), expected.to_string());
}
