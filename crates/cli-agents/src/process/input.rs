//! Standard input: a bounded queue, so that a child that does not read never blocks its turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

/// A queue that holds more takes nothing. One line may be longer.
const LONGEST_QUEUE: usize = 1 << 20;

/// Why a line was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The child or this process has closed it.
    #[error("the program no longer reads its input")]
    Closed,
    /// The child does not read.
    #[error("the program does not read its input, and {LONGEST_QUEUE} bytes are waiting already")]
    Full,
}

#[derive(Debug)]
pub(super) struct Input {
    lines: Option<UnboundedSender<String>>,
    queued: Arc<AtomicUsize>,
    writer: JoinHandle<()>,
}

impl Input {
    pub(super) fn new(pipe: Sender) -> Self {
        let (lines, queue) = unbounded_channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let writer = tokio::spawn(write(pipe, queue, Arc::clone(&queued)));
        Self { lines: Some(lines), queued, writer }
    }

    pub(super) fn write(&self, mut line: String) -> Result<(), WriteError> {
        let lines = self.lines.as_ref().ok_or(WriteError::Closed)?;
        if lines.is_closed() {
            return Err(WriteError::Closed);
        }
        if self.queued.load(Ordering::Acquire) >= LONGEST_QUEUE {
            return Err(WriteError::Full);
        }
        line.push('\n');
        self.queued.fetch_add(line.len(), Ordering::AcqRel);
        lines.send(line).map_err(|_| WriteError::Closed)
    }

    /// Closes it once the queue is written.
    pub(super) fn close(&mut self) {
        self.lines = None;
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.writer.abort();
    }
}

async fn write(mut pipe: Sender, mut queue: UnboundedReceiver<String>, queued: Arc<AtomicUsize>) {
    while let Some(line) = queue.recv().await {
        if pipe.write_all(line.as_bytes()).await.is_err() {
            // The child has closed its end; the next write fails.
            return;
        }
        queued.fetch_sub(line.len(), Ordering::AcqRel);
    }
}
