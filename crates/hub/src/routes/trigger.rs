//! What has triggered a route: the item of a hit, read from the log once more, and what its message inherits of it. Only the
//! place of an event is stored with a hit, so that what is owed costs little, however large the event.

use switchboard_a2a::TaskId;
use switchboard_engine::event::Event;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::feed::{FeedContent, FeedCursor, FeedRow, Position};
use switchboard_engine::store::lineage::Via;
use switchboard_engine::store::{StoreError, TaskIdentity};
use switchboard_engine::{Caller, Seq};

use super::message::ROUTES_KEY;
use super::owed::Hit;
use crate::feed::{FeedFilter, Item, Pattern, View, items};
use crate::hub::HubState;

/// An event, and the task that it is of.
pub(super) struct Trigger {
    pub(super) item: Item,
    pub(super) task: Option<TaskKey>,
    /// The routes that have caused it.
    pub(super) routes: Vec<String>,
}

impl Trigger {
    /// Reads the event of a hit; nothing if it was deleted.
    pub(super) async fn read(hub: &HubState, hit: &Hit) -> Result<Option<Self>, StoreError> {
        let Some(cursor) = FeedCursor::parse(&hit.cursor) else { return Ok(None) };
        let Position { major, row, seq } = cursor.position;
        let before = Position { major, row: row - 1, seq: Seq(i64::MAX.cast_unsigned()) };
        let page = hub.parts.store.read_all(before, 1, usize::MAX).await?;
        let Some(found) = page.rows.first().filter(|found| (found.epoch, found.row) == (cursor.epoch, row)) else {
            return Ok(None);
        };
        let filter = FeedFilter { topics: Pattern::parse(&hit.topic).into_iter().collect(), ..FeedFilter::default() };
        let after = Seq(seq.0.saturating_sub(1));
        let all = items(hub, &View::of(&Caller::local()), &filter, found, after).await?;
        let Some(item) = all.into_iter().find(|item| item.id.position.seq == seq) else { return Ok(None) };
        let cause = Cause::of(hub, found).await?;
        Ok(Some(Self { item, task: cause.task, routes: cause.routes }))
    }
}

/// What is known of where an event comes from.
#[derive(Default)]
pub(super) struct Cause {
    pub(super) task: Option<TaskKey>,
    /// The routes whose message its task, or one above it, has begun with.
    pub(super) routes: Vec<String>,
}

impl Cause {
    pub(super) async fn of(hub: &HubState, row: &FeedRow) -> Result<Self, StoreError> {
        let (key, task) = match &row.content {
            FeedContent::Events { key, task, .. } => (*key, TaskIdentity::clone(task)),
            FeedContent::Journal(line) => match &line.task {
                Some(id) => match Self::load(hub, id).await? {
                    Some(found) => found,
                    None => return Ok(Self::default()),
                },
                None => return Ok(Self::default()),
            },
        };
        // Most tasks come from elsewhere, and nothing of them has to be read.
        let routes = match task.lineage.via {
            Via::Route => Self::routes(hub, key, &task).await?,
            _ => Vec::new(),
        };
        Ok(Self { task: Some(key), routes })
    }

    /// The routes that the first message of a task's tree names.
    async fn routes(hub: &HubState, key: TaskKey, task: &TaskIdentity) -> Result<Vec<String>, StoreError> {
        let root = task.lineage.ancestors.map_or(key, |above| above.root);
        let rows = hub.parts.store.read(root, Seq(0), 1).await?;
        let Some(Ok(Event::Received(first))) = rows.first().and_then(|row| row.line(Seq(1))).map(Event::decode) else {
            return Ok(Vec::new());
        };
        let named = first.message.metadata.as_ref().and_then(|metadata| metadata.get(ROUTES_KEY)?.read().ok());
        Ok(named.unwrap_or_default())
    }

    async fn load(hub: &HubState, id: &TaskId) -> Result<Option<(TaskKey, TaskIdentity)>, StoreError> {
        let loaded = hub.parts.store.load(id).await?;
        Ok(loaded.map(|loaded| (loaded.row.key, loaded.row.task)))
    }
}
