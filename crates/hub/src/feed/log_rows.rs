//! The log of one task as rows of the feed.

use switchboard_engine::Seq;
use switchboard_engine::store::feed::{FeedContent, FeedRow};
use switchboard_engine::store::{StoreError, TaskRow};

use crate::hub::HubState;

/// What is read of a log at a time.
const LOG_BYTES: usize = 1 << 20;

/// The rows of a task, oldest first, and whether they are all: no more are read once they have so many bytes.
pub(crate) async fn log_rows(
    hub: &HubState,
    task: &TaskRow,
    max_bytes: usize,
) -> Result<(Vec<FeedRow>, bool), StoreError> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let mut after = Seq(0);
    while bytes < max_bytes {
        let read = hub.parts.store.read(task.key, after, LOG_BYTES).await?;
        let Some(last) = read.last() else { return Ok((rows, true)) };
        after = last.first_seq.plus(u64::from(last.count).saturating_sub(1));
        for events in read {
            bytes += events.events.len();
            let (row, epoch) = (events.row, events.epoch);
            let (key, task, hidden) = (task.key, task.task.clone(), task.state.hidden);
            let content = FeedContent::Events { key, task, hidden, events };
            rows.push(FeedRow { major: 0, row, epoch, content });
        }
    }
    Ok((rows, false))
}
