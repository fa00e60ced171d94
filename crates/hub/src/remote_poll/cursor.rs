//! The durable cursor of the poll, its row `remote-poll`: up to when waiting tasks were looked at, so that what fell due
//! while no server ran is looked at by the next one. The node that has taken the row last polls, and no other.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use switchboard_a2a::Timestamp;
use switchboard_engine::ids::Fence;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::hub::{Advance, HubStore};

use super::Looked;
use crate::consumers::Consumers;

/// The name of its row.
const CONSUMER: &str = "remote-poll";

/// What is kept in the row.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    looked_until: Timestamp,
}

pub(super) struct PollCursor {
    store: Arc<dyn HubStore>,
    consumers: Arc<Consumers>,
    fence: Fence,
}

impl PollCursor {
    /// Takes the row for this process; also up to when tasks were looked at, if ever.
    pub(super) async fn take(
        store: Arc<dyn HubStore>,
        consumers: Arc<Consumers>,
    ) -> Result<(Self, Option<Timestamp>), StoreError> {
        let row = store.take_consumer(CONSUMER).await?;
        let kept: Option<Kept> = serde_json::from_slice(&row.state).ok();
        consumers.report(CONSUMER, Duration::ZERO);
        Ok((Self { store, consumers, fence: row.fence }, kept.map(|kept| kept.looked_until)))
    }

    /// Says which tasks were looked at; an error if another process polls now. What is stored is for all agents: the next
    /// process begins where the one is that has been away longest, or it would take its tasks for looked at.
    pub(super) async fn advance(&self, looked: &Looked, now: Timestamp) -> Result<(), StoreError> {
        let looked_until = looked.behind.values().copied().fold(looked.until, Ord::min);
        let state = serde_json::to_vec(&Kept { looked_until }).unwrap_or_default();
        let advance = Advance {
            consumer: CONSUMER.to_owned(),
            fence: self.fence,
            cursor: None,
            state: Bytes::from(state),
            health: Vec::new(),
            jobs: Vec::new(),
            journal: Vec::new(),
        };
        // An agent that is away does not make the poll slow.
        let lag = u64::try_from(now.0.saturating_sub(looked.until.0)).unwrap_or(0);
        self.consumers.report(CONSUMER, Duration::from_millis(lag));
        self.store.advance(advance).await.map(drop)
    }
}

impl Drop for PollCursor {
    fn drop(&mut self) {
        self.consumers.release(CONSUMER);
    }
}

#[cfg(test)]
mod tests {
    use switchboard_store::{Options, SqliteStore};

    use super::*;

    #[tokio::test]
    async fn the_next_process_begins_where_the_agent_is_that_was_away() {
        let data = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(data.path(), Options::default()).unwrap());
        let take = async || {
            let consumers = Arc::<Consumers>::default();
            PollCursor::take(Arc::clone(&store) as Arc<dyn HubStore>, consumers).await.unwrap()
        };
        let (cursor, until) = take().await;
        assert_eq!(until, None);
        let mut looked = Looked::until(Timestamp(9_000));
        looked.behind.extend([("far".into(), Timestamp(4_000)), ("farther".into(), Timestamp(7_000))]);
        cursor.advance(&looked, Timestamp(9_000)).await.unwrap();
        drop(cursor);
        assert_eq!(take().await.1, Some(Timestamp(4_000)));
    }
}
