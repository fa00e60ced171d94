//! How large a task has become by what was told of it. Counting all of it with every event would take ever longer, so the
//! events are added up, and the task is looked at only where their sum says that it may be too large: what was replaced
//! does not count.

use std::io;

use switchboard_a2a::Task;

/// Between two looks at the task so many bytes come, as a share of the limit.
const SLACK: usize = 8;

/// The sum so far.
#[derive(Debug, Default)]
pub(super) struct TaskSize {
    bytes: usize,
}

impl TaskSize {
    /// Adds an event to what was told; without that, it begins anew. Says whether it has become too large.
    pub(super) fn exceeds(&mut self, emitted: Option<&Task>, event: usize, limit: usize) -> bool {
        let Some(emitted) = emitted else {
            self.bytes = event;
            return event > limit;
        };
        self.bytes = self.bytes.saturating_add(event);
        if self.bytes <= limit.saturating_add(limit / SLACK) {
            return false;
        }
        self.bytes = size(emitted).saturating_add(event);
        self.bytes > limit
    }
}

/// A task's bytes as JSON.
fn size(task: &Task) -> usize {
    let mut counter = Counter(0);
    // Neither counting nor writing a task can fail.
    match serde_json::to_writer(&mut counter, task) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
