//! Standard error: always drained, so that the child never blocks on it; only its tail is kept.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;
use tracing::{Level, debug, enabled};

use super::line_splitter::LineSplitter;
use super::output::{Output, OutputBudget};
use super::signal::ExitStatus;
use super::spawner::ended;
use crate::adapters::plain_lines;

pub(super) const CHUNK: usize = 16 << 10;

/// At most so much is read after the exit, the most that a pipe can hold: an escaped process that writes on must not
/// hold up the run.
pub(super) const LEFTOVER: usize = 1 << 20;

/// Longer lines are cut in the log.
const LOG_LINE: usize = 4 << 10;

#[derive(Debug)]
pub(super) struct StderrTail {
    limit: usize,
    bytes: Vec<u8>,
    is_cut: bool,
}

impl StderrTail {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, bytes: Vec::new(), is_cut: false }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Not at every read, so that bytes are moved once and not over and over.
        if self.bytes.len() > self.limit.saturating_mul(2) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let excess = self.bytes.len().saturating_sub(self.limit);
        self.is_cut |= excess > 0;
        self.bytes.drain(..excess);
    }

    /// As plain text, from the first whole line.
    pub(super) fn text(&mut self) -> String {
        self.cut();
        let line_end = self.bytes.iter().position(|byte| *byte == b'\n').filter(|_| self.is_cut);
        let begin = line_end.map_or(0, |line_end| line_end + 1);
        let text = plain_lines(&String::from_utf8_lossy(self.bytes.get(begin..).unwrap_or_default()));
        text.trim_end().to_owned()
    }
}

/// Reads until there is no more, or the run is over.
pub(super) async fn drain(
    mut stderr: Receiver,
    tail: Arc<Mutex<StderrTail>>,
    budget: Arc<OutputBudget>,
    mut done: watch::Receiver<Option<ExitStatus>>,
    label: String,
) {
    let mut log = LineSplitter::new(LOG_LINE);
    let mut chunk = vec![0; CHUNK];
    let mut take = |bytes: &[u8]| {
        budget.spend(bytes.len());
        tail.lock().push(bytes);
        if enabled!(Level::DEBUG) {
            log.push(bytes);
            while let Some(line) = log.take() {
                log_line(&label, line);
            }
        }
    };
    loop {
        tokio::select! {
            biased;
            _ = ended(&mut done) => break,
            read = stderr.read(&mut chunk) => match read {
                Ok(0) | Err(_) => return,
                Ok(count) => take(chunk.get(..count).unwrap_or_default()),
            },
        }
    }
    let mut left = LEFTOVER;
    while let Some(count) = read_now(&stderr, &mut chunk).filter(|_| left > 0) {
        left = left.saturating_sub(count);
        take(chunk.get(..count).unwrap_or_default());
    }
    if let Some(line) = log.finish() {
        log_line(&label, line);
    }
}

/// What is in the pipe now. The runtime would report an empty pipe until it has polled it.
pub(super) fn read_now(pipe: &Receiver, chunk: &mut [u8]) -> Option<usize> {
    loop {
        match rustix::io::read(pipe, &mut *chunk) {
            Ok(0) => return None,
            Ok(count) => return Some(count),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

fn log_line(label: &str, line: Output) {
    match line {
        Output::Line(line) => debug!(label, line = plain_lines(&line), "standard error"),
        Output::TooLong { bytes } => debug!(label, bytes, "standard error: a long line"),
        Output::Pause(_) | Output::Flood | Output::Ended(_) => {}
    }
}
