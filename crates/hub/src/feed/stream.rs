//! The feed as an event stream (SSE): the cursor as `id`, the topic as `event`, the item as `data`.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::Timestamp;
use switchboard_engine::clock::later;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::feed::{FeedCursor, FeedRow, FeedStart};
use switchboard_engine::store::{ListFilter, ListQuery};
use switchboard_engine::{Error, FeedItem, FeedReader, Seq};
use switchboard_server::{FrameFormat, StreamFlow};
use tokio_util::sync::CancellationToken;

use super::filter::FeedFilter;
use super::item::{Item, items};
use super::log_rows::log_rows;
use super::view::View;
use crate::hub::HubState;

/// How long a brief stream gathers: a screen that shows what is newest needs no more.
const BRIEF_WAIT: Duration = Duration::from_millis(250);
/// Tasks of a conversation whose logs are read back.
const CONTEXT_TASKS: usize = 1_000;

/// Where a stream begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StreamStart {
    /// With what comes next.
    Now,
    /// With the oldest item there is.
    Oldest,
    After(FeedCursor),
}

impl From<StreamStart> for FeedStart {
    fn from(start: StreamStart) -> Self {
        match start {
            StreamStart::Now => Self::Now,
            StreamStart::Oldest => Self::Oldest,
            StreamStart::After(cursor) => Self::After(cursor),
        }
    }
}

/// A reader of the feed that follows it.
pub(crate) struct FeedStream {
    hub: Arc<HubState>,
    view: View,
    filter: FeedFilter,
    reader: FeedReader,
    /// Read before anything of the reader: what is left of a backlog, and a row that is being made into items.
    waiting: VecDeque<FeedItem>,
    /// Items that are not written yet.
    ready: Vec<Item>,
    /// Of a brief stream, when the next items may be written.
    brief: Option<Timestamp>,
}

impl FeedStream {
    pub(crate) async fn open(
        hub: &Arc<HubState>,
        view: View,
        filter: FeedFilter,
        start: StreamStart,
        brief: bool,
    ) -> Result<Self, Error> {
        let (reader, waiting) = open_reader(hub, &view, &filter, start).await?;
        let brief = brief.then(|| hub.parts.clock.now());
        Ok(Self { hub: Arc::clone(hub), view, filter, reader, waiting, ready: Vec::new(), brief })
    }

    /// Makes items of the next row. Nothing is lost if it is dropped on the way. False at the end of the feed.
    async fn read_row(&mut self) -> Result<bool, Error> {
        if self.waiting.is_empty() {
            let Some(item) = self.reader.next().await? else { return Ok(false) };
            self.waiting.push_back(item);
        }
        let Some(item) = self.waiting.front() else { return Ok(true) };
        let made = match item {
            FeedItem::Gap => vec![Item::gap(self.reader.cursor())],
            FeedItem::Row { row, after } => items(&self.hub, &self.view, &self.filter, row, *after).await?,
        };
        self.waiting.pop_front();
        if self.brief.is_some() {
            made.into_iter().for_each(|item| self.gather(item));
        } else {
            self.ready.extend(made);
        }
        Ok(true)
    }

    /// Keeps the newest item of each task, without its payload.
    fn gather(&mut self, mut item: Item) {
        item.payload = None;
        if item.source.task_id.is_some() {
            self.ready.retain(|other| other.source.task_id != item.source.task_id);
        }
        self.ready.push(item);
    }

    /// The next items; waits for some.
    async fn read(&mut self) -> Result<Option<Vec<Item>>, Error> {
        while self.ready.is_empty() {
            if !self.read_row().await? {
                return Ok(None);
            }
        }
        if let Some(next) = self.brief {
            let clock = Arc::clone(&self.hub.parts.clock);
            loop {
                tokio::select! {
                    biased;
                    () = clock.sleep_until(next) => break,
                    read = self.read_row() => if !read? { break },
                }
            }
            self.brief = Some(later(clock.now(), BRIEF_WAIT));
        }
        Ok(Some(std::mem::take(&mut self.ready)))
    }
}

impl FrameFormat for FeedStream {
    type Events = Vec<Item>;

    async fn next(&mut self, _: &CancellationToken) -> Option<Vec<Item>> {
        match self.read().await {
            Ok(items) => items,
            Err(error) => {
                tracing::warn!(%error, "a stream of the feed ends");
                None
            }
        }
    }

    fn frame_bytes(&self, items: &Vec<Item>) -> usize {
        items.iter().map(|item| item.payload.as_ref().map_or(0, |payload| payload.get().len()) + 512).sum()
    }

    fn write(&mut self, items: Vec<Item>, out: &mut Vec<u8>) -> StreamFlow {
        for (index, item) in items.iter().enumerate() {
            let Ok(data) = serde_json::to_string(item) else { continue };
            // A reader that comes back goes on after all that an event means, so only the last item of it has the id.
            let is_last = items.get(index + 1).is_none_or(|next| next.id != item.id);
            let id = if is_last { format!("id: {}\n", item.id) } else { String::new() };
            // Writing to memory does not fail.
            let _ = write!(out, "{id}event: {}\ndata: {data}\n\n", item.topic);
        }
        StreamFlow::Continue
    }
}

/// The reader of a stream, and what it is to be given before. A key without a role reads what is older than the ring by
/// task or conversation only, from those logs: reading all of the store is not for every caller.
async fn open_reader(
    hub: &Arc<HubState>,
    view: &View,
    filter: &FeedFilter,
    start: StreamStart,
) -> Result<(FeedReader, VecDeque<FeedItem>), Error> {
    let engine = &hub.engine;
    let from = match start {
        StreamStart::After(cursor) => cursor.position.row,
        StreamStart::Oldest => 0,
        StreamStart::Now => i64::MAX,
    };
    let floor = engine.feed_floor();
    if view.has_role() || from >= floor {
        return Ok((engine.feed(start.into()).await?, VecDeque::new()));
    }
    if filter.task.is_none() && filter.context.is_none() {
        return Ok((engine.feed_recent().await?, VecDeque::from([FeedItem::Gap])));
    }
    let reader = engine.feed(FeedStart::Now).await?;
    let located = hub.parts.store.locate(start.into()).await?;
    let (after, upto) = (located.cursor, reader.cursor().position.row);
    let mut rows = logs(hub, view, filter).await?;
    rows.retain(|row| row.row <= upto && row.cursor().position > after.position);
    rows.sort_by_key(|row| row.row);
    let row = |row: FeedRow| {
        let seq = if row.row == after.position.row { after.position.seq } else { Seq(0) };
        FeedItem::Row { row: Arc::new(row), after: seq }
    };
    let gap = located.is_gap.then_some(FeedItem::Gap);
    Ok((reader, gap.into_iter().chain(rows.into_iter().map(row)).collect()))
}

/// The rows of the caller's tasks that a filter names.
async fn logs(hub: &HubState, view: &View, filter: &FeedFilter) -> Result<Vec<FeedRow>, StoreError> {
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
    Ok(rows)
}
