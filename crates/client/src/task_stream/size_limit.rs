//! The size of the emitted task. Measuring it with every event would take ever longer, so event sizes are summed up,
//! and the task is measured only when the sum exceeds the limit: replaced content does not count.

use std::io;

use switchboard_a2a::Task;

/// The share of the limit that may come between two measurements.
const SLACK: usize = 8;

#[derive(Debug, Default)]
pub(super) struct TaskSize {
    bytes: usize,
}

impl TaskSize {
    /// Adds an event; without an emitted task the sum begins anew. Says whether the limit is exceeded.
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
