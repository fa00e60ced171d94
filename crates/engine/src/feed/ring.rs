//! The ring buffer of committed rows, bounded by bytes. Without a reader it is empty, and an append pays one atomic load.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::store::feed::FeedRow;

/// What a row takes besides its events, roughly: itself, and its task's identity.
const ROW_BYTES: usize = 1024;
/// The lines of a short task stand in a buffer of at least 1.5 KiB, and what was decoded of them takes as much.
const EVENTS_BYTES: usize = 3072;
/// What a place takes, empty or not.
const PLACE_BYTES: usize = size_of::<Option<Arc<FeedRow>>>();

pub(crate) struct FeedRing {
    max_bytes: usize,
    readers: AtomicUsize,
    /// Those of them that serve a client's stream.
    streams: AtomicUsize,
    state: Mutex<State>,
    /// Notified after each row.
    filled: Notify,
}

#[derive(Default)]
struct State {
    /// The rows after `floor`, one place for each, without holes at either end. A row whose append has not reported yet, or
    /// which none of this process wrote, leaves its place empty.
    rows: VecDeque<Option<Arc<FeedRow>>>,
    bytes: usize,
    /// Rows up to this one do not come any more: they were committed before there was a reader, or made room for others.
    floor: i64,
}

impl State {
    /// The place of a row after `floor`.
    fn place(&self, row: i64) -> Option<usize> {
        usize::try_from(row - self.floor - 1).ok()
    }

    fn get(&self, row: i64) -> Option<&Arc<FeedRow>> {
        self.rows.get(self.place(row)?)?.as_ref()
    }

    fn insert(&mut self, row: FeedRow, max_bytes: usize) {
        let Some(mut place) = self.place(row.row) else { return };
        if place >= max_bytes / PLACE_BYTES {
            // So far ahead that not even empty places would fit: the ring begins anew.
            *self = Self { floor: row.row - 1, ..Self::default() };
            place = 0;
        }
        if place >= self.rows.len() {
            self.rows.resize(place + 1, None);
        }
        if let Some(slot) = self.rows.get_mut(place) {
            self.bytes += memory_of(&row);
            self.bytes -= slot.replace(Arc::new(row)).map_or(0, |known| memory_of(&known));
        }
        while self.bytes > max_bytes
            && let Some(oldest) = self.rows.pop_front()
        {
            self.floor += 1;
            self.bytes -= oldest.map_or(0, |row| memory_of(&row));
        }
    }
}

fn memory_of(row: &FeedRow) -> usize {
    row.size().max(EVENTS_BYTES) + ROW_BYTES
}

impl FeedRing {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            readers: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
            state: Mutex::default(),
            filled: Notify::new(),
        }
    }

    /// One reader more; `committed` is the newest row there is.
    pub(crate) fn join(&self, committed: i64) {
        let mut state = self.state.lock();
        if self.readers.fetch_add(1, Ordering::SeqCst) == 0 {
            *state = State { floor: committed, ..State::default() };
        }
    }

    pub(crate) fn leave(&self) {
        let mut state = self.state.lock();
        if self.readers.fetch_sub(1, Ordering::SeqCst) == 1 {
            *state = State::default();
        }
    }

    pub(crate) fn readers(&self) -> usize {
        self.readers.load(Ordering::Relaxed)
    }

    /// Counts a reader as one of a stream, or no longer.
    pub(crate) fn count_stream(&self, is_open: bool) {
        match is_open {
            true => self.streams.fetch_add(1, Ordering::Relaxed),
            false => self.streams.fetch_sub(1, Ordering::Relaxed),
        };
    }

    pub(crate) fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// Rows up to this one are not here; without a reader none is.
    pub(crate) fn floor(&self, committed: i64) -> i64 {
        let state = self.state.lock();
        if self.readers() == 0 { committed } else { state.floor }
    }

    /// Takes a row that was committed. It may come after rows with greater ids.
    pub(crate) fn push(&self, row: FeedRow) {
        let mut state = self.state.lock();
        if row.row <= state.floor || self.readers() == 0 {
            return;
        }
        state.insert(row, self.max_bytes);
        drop(state);
        self.filled.notify_waiters();
    }

    /// Whether the row after this one is there or may still come.
    pub(crate) fn expects_after(&self, row: i64) -> bool {
        self.state.lock().floor <= row
    }

    /// Waits until the row after this one is there or can no longer come.
    pub(crate) async fn wait_for_next(&self, row: i64) {
        loop {
            let mut filled = std::pin::pin!(self.filled.notified());
            filled.as_mut().enable();
            {
                let state = self.state.lock();
                if state.floor > row || state.get(row + 1).is_some() {
                    return;
                }
            }
            filled.await;
        }
    }

    /// The rows that follow one without a hole, until `max_bytes` are passed.
    pub(crate) fn after(&self, row: i64, max_bytes: usize) -> Vec<Arc<FeedRow>> {
        let state = self.state.lock();
        let mut found = Vec::new();
        let mut bytes = 0;
        let Some(place) = state.place(row + 1) else { return found };
        for row in state.rows.iter().skip(place).map_while(Option::as_ref) {
            if bytes > max_bytes {
                break;
            }
            bytes += row.size();
            found.push(Arc::clone(row));
        }
        found
    }
}
