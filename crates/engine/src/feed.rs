//! The feed: every committed row of the store in one order, for readers of all tasks.
//!
//! Rows of this process come from a ring buffer, which appends fill from lines that they hold anyway, and only while there
//! is a reader. The store says what the order is: a reader takes from the ring only the row that follows the one it has
//! read. A hole in the ring is the row of an append that has not reported yet, so it is waited for a moment. Holes that
//! stay are rows that no append of this process wrote (journal lines, other nodes' rows) or that were rolled back; for them,
//! and for what is older than the ring, the reader goes to the store.

mod ring;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::engine::{Engine, EngineState};
use crate::error::Error;
use crate::ids::Seq;
use crate::metric_definitions as metric;
use crate::store::StoreFuture;
use crate::store::feed::{FeedCursor, FeedPage, FeedRow, FeedStart, Position};
pub(crate) use ring::FeedRing;
use ring::ReaderId;

/// How long a hole in the ring is waited for.
const HOLE_WAIT: Duration = Duration::from_millis(100);
/// A page from the store: enough to catch up quickly, and no more than a reader may hold.
const PAGE_ROWS: usize = 256;
const PAGE_BYTES: usize = 1 << 20;

/// What a reader of the feed gets.
#[derive(Clone, Debug)]
pub enum FeedItem {
    /// Rows before the next one may be missing: they were deleted, or lost with the epoch of the cursor.
    Gap,
    /// The next row. Of its events, those up to `after` were read before.
    Row {
        /// The row.
        row: Arc<FeedRow>,
        /// The last event that was read before; 0 if none was.
        after: Seq,
    },
}

/// A reader of all rows: each once, in order. It causes no backpressure; what it has not read stays in the store.
pub struct FeedReader {
    engine: Arc<EngineState>,
    /// What the ring calls it.
    id: ReaderId,
    /// The newest row that is committed.
    committed: watch::Receiver<i64>,
    cursor: FeedCursor,
    /// Up to here there is no row that was not read, though one may have been committed and deleted since.
    nothing_up_to: i64,
    /// The row that a missing one follows, and since when it is waited for.
    hole: Option<(i64, Duration)>,
    /// A read of the store that was begun. Only one at a time has it, so the lock is never waited for.
    reading: Mutex<Option<StoreRead>>,
    /// Rows that are taken and not handed out.
    taken: VecDeque<Arc<FeedRow>>,
    has_gap: bool,
    /// The rest of a row that was read in part is in the store alone, so the store is asked first.
    has_begun: bool,
    /// The greatest deleted row that a gap was told for.
    told_evicted: Position,
    /// What it serves, if that is a client and no consumer of this process.
    client: Option<FeedClient>,
}

/// A client that a reader serves, by what it is connected with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedClient {
    /// An event stream.
    Stream,
    /// A WebSocket.
    WebSocket,
}

/// A read of the store that goes on when its reader is called again.
struct StoreRead {
    after: Position,
    /// What was committed when it was begun.
    committed: i64,
    page: StoreFuture<FeedPage>,
}

impl Engine {
    /// Rows up to this one are not in the ring: they are read from the store.
    pub fn feed_floor(&self) -> i64 {
        let committed = *self.inner.store.committed().borrow();
        self.inner.feed_ring.floor(committed)
    }

    /// Reads the rows of the ring and what comes after them.
    pub async fn feed_recent(&self) -> Result<FeedReader, Error> {
        let mut reader = self.feed(FeedStart::Now).await?;
        let floor = self.feed_floor();
        if floor < reader.cursor.position.row {
            reader.cursor = FeedCursor { position: Position { row: floor, ..Position::default() }, ..reader.cursor };
            // No row was read in part.
            reader.has_begun = true;
        }
        Ok(reader)
    }

    /// Reads all rows from a place on. While there is such a reader, the appends of this process fill the ring.
    pub async fn feed(&self, start: FeedStart) -> Result<FeedReader, Error> {
        let engine = Arc::clone(&self.inner);
        let committed = engine.store.committed();
        let id = engine.feed_ring.join(*committed.borrow());
        // From here on the reader leaves the ring when it is dropped.
        let mut reader = FeedReader {
            committed,
            cursor: FeedCursor::BEGINNING,
            nothing_up_to: 0,
            hole: None,
            reading: Mutex::default(),
            taken: VecDeque::new(),
            has_gap: false,
            has_begun: false,
            told_evicted: Position::default(),
            client: None,
            id,
            engine,
        };
        let located = reader.engine.store.locate(start).await?;
        reader.cursor = located.cursor;
        reader.has_gap = located.is_gap;
        reader.told_evicted = located.evicted_to;
        Ok(reader)
    }
}

impl FeedReader {
    /// The same, counted in the metrics as the reader of a client.
    #[must_use]
    pub fn for_client(mut self, kind: FeedClient) -> Self {
        if self.client.is_none() {
            self.client = Some(kind);
            self.engine.feed_ring.count_client(kind, true);
        }
        self
    }

    /// Where it stands: a later reader that begins after this cursor gets what comes next.
    pub fn cursor(&self) -> FeedCursor {
        self.cursor
    }

    /// The next item; waits for one. Nothing once the server has stopped.
    pub async fn next(&mut self) -> Result<Option<FeedItem>, Error> {
        loop {
            if let Some(item) = self.next_taken() {
                return Ok(Some(item));
            }
            if !self.take_more().await? {
                return Ok(None);
            }
        }
    }

    /// The next item of those that were taken with [`Self::take_more`]: a reader of many rows waits for the next ones
    /// together.
    pub fn next_taken(&mut self) -> Option<FeedItem> {
        if std::mem::take(&mut self.has_gap) {
            metrics::counter!(metric::FEED_GAPS).increment(1);
            return Some(FeedItem::Gap);
        }
        self.taken.pop_front().map(|row| self.hand_out(row))
    }

    fn hand_out(&mut self, row: Arc<FeedRow>) -> FeedItem {
        let read = self.cursor.position;
        let after = if row.row == read.row { read.seq } else { Seq(0) };
        self.cursor = row.cursor();
        FeedItem::Row { row, after }
    }

    /// Takes rows from the ring or the store; waits until there may be some. False once the server has stopped.
    pub async fn take_more(&mut self) -> Result<bool, Error> {
        if !self.has_begun {
            // The rest of a row that was read in part is only there. Not before it is read: this may fail, or be dropped.
            let read = self.read_store().await?;
            self.has_begun = true;
            return Ok(read);
        }
        let engine = Arc::clone(&self.engine);
        let read = self.cursor.position.row.max(self.nothing_up_to);
        if *self.committed.borrow_and_update() > read {
            if engine.feed_ring.expects_after(read) {
                // The senders of this commit are about to run: one page for all of them, not a page for each.
                tokio::task::yield_now().await;
            }
            if engine.feed_ring.misses_after(read) {
                let filled = engine.feed_ring.wait_for_next(read);
                let wait = self.hole_wait(read);
                tokio::select! {
                    biased;
                    () = filled => {}
                    () = engine.clock.sleep(wait) => {}
                    () = engine.drained.cancelled() => return Ok(false),
                }
            }
            self.taken.extend(engine.feed_ring.after(self.id, read, PAGE_BYTES));
            if !self.taken.is_empty() {
                return Ok(true);
            }
            return self.read_store().await;
        }
        tokio::select! {
            biased;
            changed = self.committed.changed() => Ok(changed.is_ok()),
            () = engine.drained.cancelled() => Ok(false),
        }
    }

    /// How long a hole is waited for that has perhaps been waited for before.
    fn hole_wait(&mut self, after: i64) -> Duration {
        let now = self.engine.clock.monotonic();
        match self.hole {
            Some((known, since)) if known == after => HOLE_WAIT.saturating_sub(now.saturating_sub(since)),
            _ => {
                self.hole = Some((after, now));
                HOLE_WAIT
            }
        }
    }

    /// A reader that is called again and again for a moment gets on nevertheless: the read goes on where it was left.
    async fn read_store(&mut self) -> Result<bool, Error> {
        let position = self.cursor.position;
        let kept = self.reading.get_mut();
        // The ring may have got the reader on meanwhile.
        if kept.as_ref().is_some_and(|reading| reading.after != position) {
            *kept = None;
        }
        let reading = kept.get_or_insert_with(|| StoreRead {
            after: position,
            committed: *self.committed.borrow(),
            page: self.engine.store.read_all(position, PAGE_ROWS, PAGE_BYTES),
        });
        let committed = reading.committed;
        let page = (&mut reading.page).await;
        *self.reading.get_mut() = None;
        let page = page?;
        if page.evicted_to > self.told_evicted && page.evicted_to.row > position.row {
            self.has_gap = true;
        }
        self.told_evicted = self.told_evicted.max(page.evicted_to);
        if page.rows.is_empty() {
            self.nothing_up_to = committed;
        }
        self.taken.extend(page.rows.into_iter().map(Arc::new));
        Ok(true)
    }
}

impl Drop for FeedReader {
    fn drop(&mut self) {
        self.engine.feed_ring.leave(self.id);
        if let Some(kind) = self.client {
            self.engine.feed_ring.count_client(kind, false);
        }
    }
}
