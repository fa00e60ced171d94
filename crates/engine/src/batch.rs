//! Events on their way into the log: what one append will write, already encoded.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_a2a::Timestamp;

use crate::event::{Event, LoggedEvent};
use crate::ids::{Epoch, Seq};

/// The lines of a task that is done at once fit into so much: a buffer that grows is copied each time.
const SHORT_TASK_BYTES: usize = 1536;

/// Events and their lines. Each is encoded once, when it is pushed; the same bytes go to the log and to v1.0 streams.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) events: Vec<Event>,
    lines: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    pub(crate) fn of(events: Vec<Event>) -> Self {
        let mut batch = Self::default();
        for event in events {
            batch.push(event);
        }
        batch
    }

    /// Adds an event and says how many bytes its line has.
    pub(crate) fn push(&mut self, event: Event) -> usize {
        if self.lines.is_empty() {
            self.lines.reserve(SHORT_TASK_BYTES);
        } else {
            self.lines.push(b'\n');
        }
        let start = self.lines.len();
        event.encode_into(&mut self.lines);
        self.ends.push(self.lines.len());
        self.events.push(event);
        self.lines.len() - start
    }

    pub(crate) fn pop(&mut self) {
        self.events.pop();
        self.ends.pop();
        self.lines.truncate(self.ends.last().copied().unwrap_or(0));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lines.len()
    }

    /// Leaves as many events as fit into so many bytes, at least one, and gives back those behind them.
    pub(crate) fn split_off(&mut self, max_bytes: usize) -> Self {
        let fitting = self.ends.partition_point(|end| *end <= max_bytes).max(1);
        if fitting >= self.len() {
            return Self::default();
        }
        let cut = self.ends[fitting - 1];
        let lines = self.lines.split_off(cut + 1);
        self.lines.truncate(cut);
        let ends = self.ends.split_off(fitting).into_iter().map(|end| end - cut - 1).collect();
        Self { events: self.events.split_off(fitting), lines, ends }
    }

    /// Dates the statuses after one that another writer committed first: status times rise within a task.
    pub(crate) fn date_after(&mut self, mut last: Timestamp) {
        let mut is_changed = false;
        for event in &mut self.events {
            let Event::StatusUpdate(update) = event else { continue };
            let Some(at) = &mut update.status.timestamp else { continue };
            if *at <= last {
                *at = Timestamp(last.0 + 1);
                is_changed = true;
            }
            last = *at;
        }
        if is_changed {
            *self = Self::of(std::mem::take(&mut self.events));
        }
    }

    pub(crate) fn extend(&mut self, later: Self) {
        for event in later.events {
            self.push(event);
        }
    }

    /// The events, and their lines as one piece of shared memory. Readers keep it for as long as the turn runs, so it is not
    /// much larger than the lines.
    pub(crate) fn seal(mut self) -> SealedBatch {
        if self.lines.len() <= self.lines.capacity() / 2 {
            self.lines.shrink_to_fit();
        }
        SealedBatch { events: self.events, lines: Bytes::from(self.lines), ends: self.ends }
    }
}

/// A batch that is being written.
pub(crate) struct SealedBatch {
    pub(crate) events: Vec<Event>,
    pub(crate) lines: Bytes,
    ends: Vec<usize>,
}

impl SealedBatch {
    /// The events as readers get them, now that they have numbers.
    pub(crate) fn logged(&self, first: Seq, epoch: Epoch) -> impl Iterator<Item = Arc<LoggedEvent>> {
        let mut start = 0;
        self.events.iter().zip(&self.ends).enumerate().map(move |(index, (event, end))| {
            let line = self.lines.slice(start..*end);
            start = end + 1;
            LoggedEvent::new(first.plus(index as u64), epoch, event.kind(), line)
        })
    }

    /// Undoes [`Batch::seal`] after a write that did not happen.
    pub(crate) fn unseal(self) -> Batch {
        Batch { events: self.events, lines: self.lines.to_vec(), ends: self.ends }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(count: u64) -> Batch {
        Batch::of((0..count).map(|seq| Event::Taken(1_000 + seq)).collect())
    }

    #[test]
    fn a_burst_splits_between_events_and_keeps_at_least_one() {
        let whole = batch(5);
        let (all, one) = (whole.lines.clone(), whole.ends[0]);
        for max_bytes in [0, one, one + 1, 2 * one, 2 * one + 1, 3 * one, all.len() - 1, all.len(), usize::MAX] {
            let mut first = batch(5);
            let rest = first.split_off(max_bytes);
            assert!(first.len() == 1 || first.bytes() <= max_bytes);
            assert_eq!(first.len() + rest.len(), 5);
            let joined = [first.lines.as_slice(), rest.lines.as_slice()];
            let joined: Vec<_> = joined.into_iter().filter(|lines| !lines.is_empty()).collect();
            assert_eq!(joined.join(&b'\n'), all);
            let mut again = first;
            again.extend(rest);
            assert_eq!(again.ends, whole.ends);
        }
    }
}
