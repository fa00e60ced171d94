//! The logs of tasks as rows of the feed, read piece by piece: of the tasks that a filter names, or of a tree. A key without a
//! role reads back by task or conversation only, from those logs: reading all of the store is not for every caller.

use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::feed::{FeedRow, LogsQuery, Position};
use switchboard_engine::store::{ListFilter, ListQuery, StoreError};

use super::filter::FeedFilter;
use super::view::View;
use crate::hub::HubState;

/// Tasks of a conversation whose logs are read back.
const CONTEXT_TASKS: usize = 1_000;

/// A piece: it is in memory beside what is made of it, so a task of any size costs as much as a small one.
pub(crate) const PIECE_BYTES: usize = 256 << 10;
const PIECE_ROWS: usize = 256;

/// How many pieces are read for one page. A page whose filter leaves out nearly everything ends early, with the cursor to go
/// on from.
pub(crate) const PIECES: usize = 64;

/// The logs of some tasks, in one order.
#[derive(Clone, Debug)]
pub(crate) struct Logs {
    tasks: Vec<TaskKey>,
}

impl Logs {
    pub(crate) fn of(tasks: Vec<TaskKey>) -> Self {
        Self { tasks }
    }

    /// Those of the caller's tasks that a filter names. Of the tasks only their keys are read.
    pub(crate) async fn named(hub: &HubState, view: &View, filter: &FeedFilter) -> Result<Self, StoreError> {
        let store = &hub.parts.store;
        if let Some(id) = &filter.task {
            let row = store.row(id).await?.filter(|row| view.sees_task(&row.task));
            return Ok(Self::of(row.into_iter().map(|row| row.key).collect()));
        }
        let agents = view.caller().scopes.agents.names().map(<[_]>::to_vec);
        let filter = ListFilter { context: filter.context.clone(), page_size: CONTEXT_TASKS, ..Default::default() };
        let page = store.list(ListQuery { owner: view.caller().id.clone(), agents, parent: None, filter }).await?;
        Ok(Self::of(page.places.into_iter().map(|(_, key)| key).collect()))
    }

    /// The next rows after a place, oldest first; none if there are none up to a row.
    pub(crate) async fn after(&self, hub: &HubState, after: Position, upto: i64) -> Result<Vec<FeedRow>, StoreError> {
        self.read(hub, after, upto, false).await
    }

    /// The rows before and with one, newest first; none if there are none.
    pub(crate) async fn back_from(&self, hub: &HubState, upto: i64) -> Result<Vec<FeedRow>, StoreError> {
        self.read(hub, Position::default(), upto, true).await
    }

    async fn read(
        &self,
        hub: &HubState,
        after: Position,
        upto: i64,
        newest_first: bool,
    ) -> Result<Vec<FeedRow>, StoreError> {
        let (tasks, max_rows, max_bytes) = (self.tasks.clone(), PIECE_ROWS, PIECE_BYTES);
        hub.parts.store.read_logs(LogsQuery { tasks, after, upto, newest_first, max_rows, max_bytes }).await
    }
}
