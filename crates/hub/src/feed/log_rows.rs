//! The logs of tasks as rows of the feed: of one, or of those that a filter names. A key without a role reads back by task or
//! conversation only, from those logs: reading all of the store is not for every caller.

use std::sync::Arc;

use switchboard_engine::Seq;
use switchboard_engine::store::feed::{FeedContent, FeedRow, WrittenOnce};
use switchboard_engine::store::{ListFilter, ListQuery, StoreError, TaskRow};

use super::filter::FeedFilter;
use super::view::View;
use crate::hub::HubState;

/// Tasks of a conversation whose logs are read back.
const CONTEXT_TASKS: usize = 1_000;

/// What is read of a log at a time.
const LOG_BYTES: usize = 1 << 20;

/// The rows of a task, oldest first, and whether they are all: no more are read once they have so many bytes.
pub(crate) async fn log_rows(
    hub: &HubState,
    task: &TaskRow,
    max_bytes: usize,
) -> Result<(Vec<FeedRow>, bool), StoreError> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let identity = Arc::new(task.task.clone());
    let mut after = Seq(0);
    while bytes < max_bytes {
        let read = hub.parts.store.read(task.key, after, LOG_BYTES).await?;
        let Some(last) = read.last() else { return Ok((rows, true)) };
        after = last.first_seq.plus(u64::from(last.count).saturating_sub(1));
        for events in read {
            bytes += events.events.len();
            let (row, epoch) = (events.row, events.epoch);
            let (key, task, hidden) = (task.key, Arc::clone(&identity), task.state.hidden);
            let content = FeedContent::Events { key, task, hidden, events, written: WrittenOnce::default() };
            rows.push(FeedRow { major: 0, row, epoch, content });
        }
    }
    Ok((rows, false))
}

/// The rows of the caller's tasks that a filter names, oldest first.
pub(crate) async fn named_rows(hub: &HubState, view: &View, filter: &FeedFilter) -> Result<Vec<FeedRow>, StoreError> {
    let store = &hub.parts.store;
    let tasks = match &filter.task {
        Some(id) => store.row(id).await?.into_iter().collect(),
        None => {
            let scope = &view.caller().scopes.agents;
            let agents = scope.names().map(<[_]>::to_vec);
            let filter = ListFilter { context: filter.context.clone(), page_size: CONTEXT_TASKS, ..Default::default() };
            let places =
                store.list(ListQuery { owner: view.caller().id.clone(), agents, parent: None, filter }).await?.places;
            let keys = places.into_iter().map(|(_, key)| key).collect();
            store.load_some(keys, usize::MAX).await?.into_iter().map(|loaded| loaded.row).collect::<Vec<_>>()
        }
    };
    let mut rows = Vec::new();
    for task in tasks.into_iter().filter(|task| view.sees_task(&task.task)) {
        rows.extend(log_rows(hub, &task, usize::MAX).await?.0);
    }
    rows.sort_by_key(|row| row.row);
    Ok(rows)
}
