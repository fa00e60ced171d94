//! The feed as it goes on: as an event stream (SSE) with the cursor as `id`, the topic as `event`, the item as `data`; or over
//! a WebSocket, where each item is a message.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::Timestamp;
use switchboard_engine::clock::later;
use switchboard_engine::store::feed::{FeedCursor, FeedStart, Position};
use switchboard_engine::{Error, FeedClient, FeedItem, FeedReader, Seq};
use switchboard_server::{FrameFormat, MessageFormat, StreamFlow};
use tokio_util::sync::CancellationToken;

use super::filter::FeedFilter;
use super::item::{Item, items};
use super::log_rows::{Logs, PIECE_BYTES};
use super::newest::NewestOfTasks;
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
    /// Read before anything of the reader, a piece at a time.
    backlog: Option<Backlog>,
    /// Where that begins: a gap before it has this place, and not that of the reader after it.
    backlog_at: Option<FeedCursor>,
    /// What was read: a piece of the backlog, or a row that is being made into items.
    waiting: VecDeque<FeedItem>,
    /// Items that are not written yet.
    ready: Vec<Item>,
    /// The same of a brief stream.
    newest: NewestOfTasks,
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
        client: FeedClient,
    ) -> Result<Self, Error> {
        let (reader, waiting, backlog) = open_reader(hub, &view, &filter, start).await?;
        let (reader, backlog_at) = (reader.for_client(client), backlog.as_ref().map(|backlog| backlog.begin));
        let brief = brief.then(|| hub.parts.clock.now());
        let (hub, ready, newest) = (Arc::clone(hub), Vec::new(), NewestOfTasks::default());
        Ok(Self { hub, view, filter, reader, backlog, backlog_at, waiting, ready, newest, brief })
    }

    /// Makes items of the next row. Nothing is lost if it is dropped on the way. False at the end of the feed.
    async fn read_row(&mut self) -> Result<bool, Error> {
        if self.waiting.is_empty()
            && let Some(backlog) = &mut self.backlog
        {
            match backlog.read(&self.hub).await? {
                rows if rows.is_empty() => (self.backlog, self.backlog_at) = (None, None),
                rows => self.waiting.extend(rows),
            }
            return Ok(true);
        }
        if self.waiting.is_empty() {
            let Some(item) = self.reader.next().await? else { return Ok(false) };
            self.waiting.push_back(item);
        }
        let Some(item) = self.waiting.front() else { return Ok(true) };
        let made = match item {
            FeedItem::Gap => vec![Item::gap(self.backlog_at.unwrap_or_else(|| self.reader.cursor()))],
            FeedItem::Row { row, after } => items(&self.hub, &self.view, &self.filter, row, *after).await?,
        };
        self.waiting.pop_front();
        if self.brief.is_some() {
            made.into_iter().for_each(|item| self.newest.add(item));
        } else {
            self.ready.extend(made);
        }
        Ok(true)
    }

    /// The next items; waits for some.
    async fn read(&mut self) -> Result<Option<Vec<Item>>, Error> {
        while self.ready.is_empty() && self.newest.is_empty() {
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
            return Ok(Some(std::mem::take(&mut self.newest).into_items()));
        }
        Ok(Some(std::mem::take(&mut self.ready)))
    }
}

impl FeedStream {
    /// The next items; nothing at the end, or if they cannot be read.
    async fn next_items(&mut self) -> Option<Vec<Item>> {
        match self.read().await {
            Ok(items) => items,
            Err(error) => {
                tracing::warn!(%error, "a stream of the feed ends");
                None
            }
        }
    }

    /// A piece of the backlog is read for this stream alone.
    fn backlog_bytes(&self) -> usize {
        if self.backlog.is_some() && self.waiting.is_empty() { PIECE_BYTES } else { 0 }
    }
}

/// The same over a WebSocket: each item is a message, with its cursor as `id`. What an event means comes right behind it and has
/// its cursor too.
pub(crate) struct FeedMessages(pub(crate) FeedStream);

impl MessageFormat for FeedMessages {
    type Events = Vec<Item>;

    fn unread_bytes(&self) -> usize {
        self.0.backlog_bytes()
    }

    async fn next(&mut self, _: &CancellationToken) -> Option<Vec<Item>> {
        self.0.next_items().await
    }

    fn message_bytes(&self, items: &Vec<Item>) -> usize {
        items.iter().map(Item::bytes).sum()
    }

    fn messages(&mut self, items: Vec<Item>) -> Vec<String> {
        items.iter().filter_map(|item| serde_json::to_string(item).ok()).collect()
    }
}

/// Rows of logs that come before those of the reader.
struct Backlog {
    logs: Logs,
    begin: FeedCursor,
    /// What was read of them.
    after: Position,
    /// Where the reader begins.
    upto: i64,
}

impl Backlog {
    /// The next piece; nothing at the end.
    async fn read(&mut self, hub: &HubState) -> Result<Vec<FeedItem>, Error> {
        let rows = self.logs.after(hub, self.after, self.upto).await?;
        let begun = self.after;
        if let Some(last) = rows.last() {
            self.after = last.cursor().position;
        }
        let after = |row: i64| if row == begun.row { begun.seq } else { Seq(0) };
        Ok(rows.into_iter().map(|row| FeedItem::Row { after: after(row.row), row: Arc::new(row) }).collect())
    }
}

impl FrameFormat for FeedStream {
    type Events = Vec<Item>;

    fn unread_bytes(&self) -> usize {
        self.backlog_bytes()
    }

    async fn next(&mut self, _: &CancellationToken) -> Option<Vec<Item>> {
        self.next_items().await
    }

    fn frame_bytes(&self, items: &Vec<Item>) -> usize {
        items.iter().map(Item::bytes).sum()
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

/// The reader of a stream, what was read before it, and what is to be read before it. A key without a role reads what is older than the ring by
/// task or conversation only, from those logs: reading all of the store is not for every caller.
async fn open_reader(
    hub: &Arc<HubState>,
    view: &View,
    filter: &FeedFilter,
    start: StreamStart,
) -> Result<(FeedReader, VecDeque<FeedItem>, Option<Backlog>), Error> {
    let engine = &hub.engine;
    let from = match start {
        StreamStart::After(cursor) => cursor.position.row,
        StreamStart::Oldest => 0,
        StreamStart::Now => i64::MAX,
    };
    let floor = engine.feed_floor();
    if view.has_role() || from >= floor {
        return Ok((engine.feed(start.into()).await?, VecDeque::new(), None));
    }
    if !filter.names_logs() {
        return Ok((engine.feed_recent().await?, VecDeque::from([FeedItem::Gap]), None));
    }
    let reader = engine.feed(FeedStart::Now).await?;
    let located = hub.parts.store.locate(start.into()).await?;
    let (after, upto) = (located.cursor.position, reader.cursor().position.row);
    let logs = Logs::named(hub, view, filter).await?;
    let gap = located.is_gap.then_some(FeedItem::Gap);
    Ok((reader, gap.into_iter().collect(), Some(Backlog { logs, begin: located.cursor, after, upto })))
}
