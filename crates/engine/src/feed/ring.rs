//! The ring buffer of committed rows, bounded by bytes. Without a reader it is empty, and an append pays one atomic load.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::store::feed::FeedRow;

/// What a row takes besides its events, roughly.
const ROW_BYTES: usize = 256;

pub(crate) struct FeedRing {
    max_bytes: usize,
    readers: AtomicUsize,
    state: Mutex<State>,
    /// Notified after each row.
    filled: Notify,
}

#[derive(Default)]
struct State {
    rows: BTreeMap<i64, Arc<FeedRow>>,
    bytes: usize,
    /// Rows up to this one do not come any more: they were committed before there was a reader, or made room for others.
    floor: i64,
}

impl State {
    fn pop_oldest(&mut self) {
        if let Some((row, oldest)) = self.rows.pop_first() {
            self.bytes -= oldest.size() + ROW_BYTES;
            self.floor = row;
        }
    }
}

impl FeedRing {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, readers: AtomicUsize::new(0), state: Mutex::default(), filled: Notify::new() }
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
        state.bytes += row.size() + ROW_BYTES;
        state.rows.insert(row.row, Arc::new(row));
        while state.bytes > self.max_bytes {
            state.pop_oldest();
        }
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
                if state.floor > row || state.rows.contains_key(&(row + 1)) {
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
        for (expected, (next, row)) in (row + 1..).zip(state.rows.range(row + 1..)) {
            if *next != expected || bytes > max_bytes {
                break;
            }
            bytes += row.size();
            found.push(Arc::clone(row));
        }
        found
    }
}
