//! The feed as an event stream (SSE): the cursor as `id`, the topic as `event`, the item as `data`.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::Timestamp;
use switchboard_engine::clock::later;
use switchboard_engine::store::feed::{FeedCursor, FeedRow, FeedStart};
use switchboard_engine::{Error, FeedItem, FeedReader, Seq};
use switchboard_server::{FrameFormat, StreamFlow};
use tokio_util::sync::CancellationToken;

use super::filter::FeedFilter;
use super::item::{Item, items};
use super::log_rows::named_rows;
use super::view::View;
use crate::hub::HubState;

/// How long a brief stream gathers: a screen that shows what is newest needs no more.
const BRIEF_WAIT: Duration = Duration::from_millis(250);

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
        let reader = reader.for_stream();
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
            made.into_iter().for_each(|item| gather(&mut self.ready, item));
        } else {
            self.ready.extend(made);
        }
        Ok(true)
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

/// Adds an item without its payload, in place of older ones of its task.
pub(crate) fn gather(items: &mut Vec<Item>, mut item: Item) {
    item.payload = None;
    if item.source.task_id.is_some() {
        items.retain(|other| other.source.task_id != item.source.task_id);
    }
    items.push(item);
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
    if !filter.names_logs() {
        return Ok((engine.feed_recent().await?, VecDeque::from([FeedItem::Gap])));
    }
    let reader = engine.feed(FeedStart::Now).await?;
    let located = hub.parts.store.locate(start.into()).await?;
    let (after, upto) = (located.cursor, reader.cursor().position.row);
    let mut rows = named_rows(hub, view, filter).await?;
    rows.retain(|row| row.row <= upto && row.cursor().position > after.position);
    let row = |row: FeedRow| {
        let seq = if row.row == after.position.row { after.position.seq } else { Seq(0) };
        FeedItem::Row { row: Arc::new(row), after: seq }
    };
    let gap = located.is_gap.then_some(FeedItem::Gap);
    Ok((reader, gap.into_iter().chain(rows.into_iter().map(row)).collect()))
}
