//! The handle of one child process: its output, its input, and its end.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use parking_lot::Mutex;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::input::{Input, WriteError};
use super::line_splitter::LineSplitter;
use super::output::{Output, OutputBudget, OutputLimits};
use super::signal::ExitStatus;
use super::spawner::{RunHandle, StartedChild, ended};
use super::stderr::{self, CHUNK, LEFTOVER, StderrTail, read_now};
use super::tree_exit::TreeExit;
use crate::adapters::Exit;

/// An unfinished line that has not grown for so long counts as a prompt.
const QUIET: Duration = Duration::from_millis(200);

/// A child process. Dropping it kills its process tree in the background.
pub struct Child {
    run: RunHandle,
    input: Option<Input>,
    /// None once there is no more, or no more is wanted.
    stdout: Option<pipe::Receiver>,
    chunk: Vec<u8>,
    lines: LineSplitter,
    /// How long the unfinished line was when it last grew.
    length: u64,
    /// When the unfinished line counts as a prompt; none once that was reported.
    quiet_at: Option<Instant>,
    budget: Arc<OutputBudget>,
    is_flooded: bool,
    tail: Arc<Mutex<StderrTail>>,
    stderr: Option<JoinHandle<()>>,
    /// Set once the process tree has exited.
    status: Option<ExitStatus>,
    /// How much may still be read after that.
    leftover: usize,
    exit: Option<Exit>,
}

impl Child {
    pub(super) fn new(started: StartedChild, limits: OutputLimits, label: String) -> io::Result<Self> {
        let StartedChild { run, stdin, stdout, stderr } = started;
        let input = stdin.map(|stdin| pipe::Sender::from_owned_fd(OwnedFd::from(stdin))).transpose()?;
        let stdout = stdout.map(|stdout| pipe::Receiver::from_owned_fd(OwnedFd::from(stdout))).transpose()?;
        let stderr = stderr.map(|stderr| pipe::Receiver::from_owned_fd(OwnedFd::from(stderr))).transpose()?;
        let budget = Arc::new(OutputBudget::new(limits.output));
        let tail = Arc::new(Mutex::new(StderrTail::new(limits.stderr)));
        let drained = |stderr| stderr::drain(stderr, Arc::clone(&tail), Arc::clone(&budget), run.done.clone(), label);
        let stderr = stderr.map(drained).map(tokio::spawn);
        Ok(Self {
            run,
            input: input.map(Input::new),
            stdout,
            chunk: vec![0; CHUNK],
            lines: LineSplitter::new(limits.line),
            length: 0,
            quiet_at: None,
            budget,
            is_flooded: false,
            tail,
            stderr,
            status: None,
            leftover: LEFTOVER,
            exit: None,
        })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.run.pid.cast_unsigned()
    }

    /// The exit of its process tree, which can be awaited after the child was dropped.
    #[must_use]
    pub fn tree_exit(&self) -> TreeExit {
        TreeExit(self.run.done.clone())
    }

    /// The next line or event. Cancellation-safe. Reads only when called, so a child that writes faster than its lines
    /// are taken is held back by its pipe (backpressure). Repeats [`Output::Ended`] at the end.
    pub async fn next(&mut self) -> Output {
        loop {
            if let Some(line) = self.lines.take() {
                return self.line_ended(line);
            }
            if self.budget.is_over() && !self.is_flooded {
                self.is_flooded = true;
                self.stdout = None;
                self.quiet_at = None;
                return Output::Flood;
            }
            if let Some(exit) = &self.exit {
                return Output::Ended(exit.clone());
            }
            match self.status {
                None => {
                    if let Some(output) = self.wait().await {
                        return output;
                    }
                }
                Some(status) => {
                    if let Some(output) = self.finish(status).await {
                        return output;
                    }
                }
            }
        }
    }

    /// The next raw bytes; none once it has ended. For output that is not made of lines, instead of [`Self::next`].
    pub async fn next_bytes(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(bytes) = self.lines.take_bytes() {
                return Some(bytes);
            }
            match self.status {
                None => drop(self.wait().await),
                Some(_) if self.exit.is_some() => return None,
                Some(status) => drop(self.finish(status).await),
            }
        }
    }

    /// Queues a line for its standard input. Never waits.
    pub fn write(&mut self, line: String) -> Result<(), WriteError> {
        self.input.as_ref().ok_or(WriteError::Closed)?.write(line)
    }

    /// Closes its input, once all is written.
    pub fn close_input(&mut self) {
        if let Some(input) = &mut self.input {
            input.close();
        }
    }

    /// Kills its process tree: SIGTERM, the grace, then SIGKILL. Output meanwhile is read and dropped. If this future
    /// is dropped, the termination goes on.
    pub async fn end(&mut self) -> Exit {
        self.run.end();
        self.input = None;
        self.gone().await
    }

    /// Closes its input, waits so long for it to exit by itself, then kills its process tree.
    pub async fn leave(&mut self, patience: Duration) -> Exit {
        self.close_input();
        match timeout(patience, self.gone()).await {
            Ok(exit) => exit,
            Err(_) => self.end().await,
        }
    }

    async fn gone(&mut self) -> Exit {
        loop {
            if let Output::Ended(exit) = self.next().await {
                return exit;
            }
        }
    }

    /// Waits for an event. The exit comes first: after it, the pipe holds all the output there will be.
    async fn wait(&mut self) -> Option<Output> {
        if self.length != self.lines.length() {
            self.length = self.lines.length();
            self.quiet_at = Some(Instant::now() + QUIET);
        }
        let read = OptionFuture::from(self.stdout.as_mut().map(|stdout| stdout.read(&mut self.chunk)));
        tokio::select! {
            biased;
            status = ended(&mut self.run.done) => self.status = Some(status),
            () = self.budget.over(), if !self.is_flooded => {}
            Some(read) = read => return self.take(read.unwrap_or_default()),
            Some(()) = OptionFuture::from(self.quiet_at.map(sleep_until)) => {
                self.quiet_at = None;
                return self.lines.unfinished().map(Output::Pause);
            }
        }
        None
    }

    /// Takes in what was read; zero bytes are the end of the output.
    fn take(&mut self, count: usize) -> Option<Output> {
        if count == 0 {
            self.stdout = None;
            return self.lines.finish().map(|line| self.line_ended(line));
        }
        self.budget.spend(count);
        self.lines.push(self.chunk.get(..count).unwrap_or_default());
        None
    }

    /// The process tree has exited: reads what is still in the pipes, then reports the exit.
    async fn finish(&mut self, status: ExitStatus) -> Option<Output> {
        if let Some(stdout) = &self.stdout {
            let count = if self.leftover > 0 { read_now(stdout, &mut self.chunk).unwrap_or_default() } else { 0 };
            self.leftover = self.leftover.saturating_sub(count);
            return self.take(count);
        }
        if let Some(stderr) = &mut self.stderr {
            let _ = stderr.await;
            self.stderr = None;
        }
        self.input = None;
        self.exit = Some(Exit { code: status.code, signal: status.signal, stderr: self.tail.lock().text() });
        None
    }

    /// A line has ended, so that none is unfinished.
    fn line_ended(&mut self, line: Output) -> Output {
        self.length = 0;
        self.quiet_at = None;
        line
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(stderr) = &self.stderr {
            stderr.abort();
        }
    }
}
