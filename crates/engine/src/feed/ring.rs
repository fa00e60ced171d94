//! The ring buffer of committed rows, bounded by bytes. Without a reader it is empty, and an append pays one atomic load.
//!
//! A row that all readers have read leaves memory at once, while it is still in the processor's cache: kept until the ring is
//! full, rows cost a message 13 % of its time instead of 3. The ring remembers how large it was, because its floor is
//! promised to callers (`hub.feed.ring` bytes of newest rows). Who comes later reads such rows from the store.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::FeedClient;
use crate::store::feed::FeedRow;

/// What a row takes besides its events, roughly: itself, and its task's identity.
const ROW_BYTES: usize = 1024;
/// The lines of a short task stand in a buffer of at least 1.5 KiB, and what was decoded of them takes as much.
const EVENTS_BYTES: usize = 3072;
/// What a slot takes, empty or not.
const SLOT_BYTES: usize = size_of::<Slot>();

pub(crate) struct FeedRing {
    max_bytes: usize,
    readers: AtomicUsize,
    next_reader: AtomicU64,
    /// Those of them that serve a client, by what it is connected with.
    streams: AtomicUsize,
    websockets: AtomicUsize,
    state: Mutex<State>,
    /// Notified after each row.
    filled: Notify,
}

/// Names a reader of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReaderId(u64);

#[derive(Default)]
struct State {
    /// One for each row after `floor`, up to the newest that came.
    slots: VecDeque<Slot>,
    /// Of all slots, those too whose rows have left memory.
    bytes: usize,
    /// Rows up to this one do not come any more: they were committed before there was a reader, or made room for others.
    floor: i64,
    /// Rows up to this one are not in memory: they are below the floor, or all readers have read them.
    released: i64,
    /// Who has read least is found out when there is a row up to this one.
    next_release: i64,
    /// Up to which row each reader has read.
    read: BTreeMap<ReaderId, i64>,
}

/// It is empty until its row comes, always if no append of this process wrote it, and again once all readers have read it.
#[derive(Clone, Default)]
struct Slot {
    row: Option<Arc<FeedRow>>,
    bytes: usize,
}

impl State {
    /// Nothing after this row is known.
    fn begin_after(&mut self, row: i64) {
        let read = std::mem::take(&mut self.read);
        *self = Self { floor: row, released: row, next_release: row, read, ..Self::default() };
    }

    /// The index of a row after `floor`.
    fn index(&self, row: i64) -> Option<usize> {
        usize::try_from(row - self.floor - 1).ok()
    }

    fn get(&self, row: i64) -> Option<&Arc<FeedRow>> {
        self.slots.get(self.index(row)?)?.row.as_ref()
    }

    fn insert(&mut self, row: FeedRow, max_bytes: usize) {
        let Some(mut index) = self.index(row.row) else { return };
        if index >= max_bytes / SLOT_BYTES {
            // So far ahead that not even empty slots would fit: the ring begins anew.
            self.begin_after(row.row - 1);
            index = 0;
        }
        if index >= self.slots.len() {
            self.slots.resize(index + 1, Slot::default());
        }
        if let Some(slot) = self.slots.get_mut(index) {
            let bytes = memory_of(&row);
            self.bytes = self.bytes + bytes - slot.bytes;
            *slot = Slot { row: Some(Arc::new(row)), bytes };
        }
        while self.bytes > max_bytes
            && let Some(oldest) = self.slots.pop_front()
        {
            self.floor += 1;
            self.released = self.released.max(self.floor);
            self.bytes -= oldest.bytes;
        }
    }

    /// Takes the rows out of memory that all readers have read.
    fn release(&mut self) -> Vec<Arc<FeedRow>> {
        let newest = self.floor.saturating_add_unsigned(self.slots.len() as u64);
        if newest < self.next_release {
            return Vec::new();
        }
        let read = self.read.values().copied().min().unwrap_or(newest).min(newest);
        // All readers are asked, so once in as many rows.
        self.next_release = newest.saturating_add_unsigned(self.read.len() as u64);
        let (Some(from), Some(to)) = (self.index(self.released + 1), self.index(read + 1)) else { return Vec::new() };
        if from >= to {
            return Vec::new();
        }
        self.released = read;
        self.slots.range_mut(from..to).filter_map(|slot| slot.row.take()).collect()
    }
}

/// Of the lines, and as much for what was decoded of them: the same when the row comes and when it goes.
fn memory_of(row: &FeedRow) -> usize {
    (2 * row.size()).max(EVENTS_BYTES) + ROW_BYTES
}

impl FeedRing {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            readers: AtomicUsize::new(0),
            next_reader: AtomicU64::new(0),
            streams: AtomicUsize::new(0),
            websockets: AtomicUsize::new(0),
            state: Mutex::default(),
            filled: Notify::new(),
        }
    }

    /// One reader more; `committed` is the newest row there is.
    pub(crate) fn join(&self, committed: i64) -> ReaderId {
        let reader = ReaderId(self.next_reader.fetch_add(1, Ordering::Relaxed));
        let mut state = self.state.lock();
        if self.readers.fetch_add(1, Ordering::SeqCst) == 0 {
            state.begin_after(committed);
        }
        // What it has not read of the rows before is in the store.
        state.read.insert(reader, committed);
        reader
    }

    pub(crate) fn leave(&self, reader: ReaderId) {
        let mut state = self.state.lock();
        state.read.remove(&reader);
        // It may have been the one that others waited for.
        state.next_release = 0;
        if self.readers.fetch_sub(1, Ordering::SeqCst) == 1 {
            *state = State::default();
        }
    }

    pub(crate) fn readers(&self) -> usize {
        self.readers.load(Ordering::Relaxed)
    }

    /// Counts a reader as one of a client's, or no longer.
    pub(crate) fn count_client(&self, kind: FeedClient, is_open: bool) {
        let count = self.of(kind);
        match is_open {
            true => count.fetch_add(1, Ordering::Relaxed),
            false => count.fetch_sub(1, Ordering::Relaxed),
        };
    }

    pub(crate) fn clients(&self, kind: FeedClient) -> usize {
        self.of(kind).load(Ordering::Relaxed)
    }

    fn of(&self, kind: FeedClient) -> &AtomicUsize {
        match kind {
            FeedClient::Stream => &self.streams,
            FeedClient::WebSocket => &self.websockets,
        }
    }

    /// Rows up to this one are older than the ring; without a reader all are.
    pub(crate) fn floor(&self, committed: i64) -> i64 {
        let state = self.state.lock();
        if self.readers() == 0 { committed } else { state.floor }
    }

    /// Takes a row that was committed. It may come after rows with greater ids.
    pub(crate) fn push(&self, row: FeedRow) {
        let mut state = self.state.lock();
        if row.row <= state.released || self.readers() == 0 {
            return;
        }
        state.insert(row, self.max_bytes);
        drop(state);
        self.filled.notify_waiters();
    }

    /// Whether the row after this one is there or may still come.
    pub(crate) fn expects_after(&self, row: i64) -> bool {
        self.state.lock().released <= row
    }

    /// Whether the row after this one is not there, and may still come.
    pub(crate) fn misses_after(&self, row: i64) -> bool {
        let state = self.state.lock();
        state.released <= row && state.get(row + 1).is_none()
    }

    /// Waits until the row after this one is there or can no longer come.
    pub(crate) async fn wait_for_next(&self, row: i64) {
        loop {
            let mut filled = std::pin::pin!(self.filled.notified());
            filled.as_mut().enable();
            if !self.misses_after(row) {
                return;
            }
            filled.await;
        }
    }

    /// The rows that follow one without a hole, until `max_bytes` are passed. They count as read.
    pub(crate) fn after(&self, reader: ReaderId, row: i64, max_bytes: usize) -> Vec<Arc<FeedRow>> {
        let mut state = self.state.lock();
        let mut found = Vec::new();
        let mut bytes = 0;
        if let Some(index) = state.index(row + 1) {
            for row in state.slots.iter().skip(index).map_while(|slot| slot.row.as_ref()) {
                if bytes > max_bytes {
                    break;
                }
                bytes += row.size();
                found.push(Arc::clone(row));
            }
        }
        if let Some(read) = state.read.get_mut(&reader) {
            *read = found.last().map_or(row, |last| last.row);
        }
        let released = state.release();
        // Whoever frees them does not hold up the writers meanwhile.
        drop(state);
        drop(released);
        found
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use switchboard_a2a::Timestamp;

    use super::*;
    use crate::ids::Epoch;
    use crate::store::feed::{FeedContent, JournalLine};

    fn row(row: i64) -> FeedRow {
        let payload = Bytes::from_static(b"{}");
        let line = JournalLine { at: Timestamp(0), owner: None, task: None, topic: "test".to_owned(), payload };
        FeedRow { major: 0, row, epoch: Epoch(1), content: FeedContent::Journal(line) }
    }

    fn in_memory(ring: &FeedRing) -> Vec<i64> {
        ring.state.lock().slots.iter().filter_map(|slot| slot.row.as_ref()).map(|row| row.row).collect()
    }

    #[test]
    fn rows_stay_for_the_reader_that_has_read_least_and_no_longer() {
        let ring = FeedRing::new(1 << 20);
        let (fast, slow) = (ring.join(0), ring.join(0));
        (1..=10).for_each(|number| ring.push(row(number)));
        assert_eq!(ring.after(fast, 0, usize::MAX).len(), 10);
        assert_eq!(in_memory(&ring), Vec::from_iter(1..=10), "one has read none");
        assert_eq!(ring.after(slow, 0, 1).len(), 1);
        (11..=13).for_each(|number| ring.push(row(number)));
        assert_eq!(ring.after(fast, 10, usize::MAX).len(), 3);
        assert_eq!(in_memory(&ring), Vec::from_iter(2..=13));
        assert_eq!((ring.expects_after(0), ring.expects_after(1)), (false, true));
        assert_eq!(ring.floor(13), 0, "who asks for them gets them from the store");
        ring.push(row(1));
        assert_eq!(in_memory(&ring), Vec::from_iter(2..=13), "nobody wants it any more");
        ring.leave(slow);
        ring.push(row(14));
        assert_eq!(ring.after(fast, 13, usize::MAX).len(), 1);
        assert_eq!(in_memory(&ring), Vec::<i64>::new());
    }

    #[test]
    fn a_reader_that_stands_still_holds_as_much_as_the_ring_takes() {
        let ring = FeedRing::new(3 * memory_of(&row(1)));
        let (fast, _slow) = (ring.join(0), ring.join(0));
        for number in 1..=10 {
            ring.push(row(number));
            ring.after(fast, number - 1, usize::MAX);
        }
        assert_eq!(in_memory(&ring), [8, 9, 10]);
        assert_eq!(ring.floor(10), 7);
    }
}
