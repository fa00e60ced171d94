//! The queue of the writer thread: FIFO, bounded in number and bytes, with group commit and load shedding.
//!
//! New work waits for a permit and is refused once the store is too far behind. Output, terminal events and cancels have
//! permits of their own, so that a flood of new work can never keep a task from ending.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use switchboard_engine::store::{Append, Appended, StoreError, StoreFuture};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::errors::store_error;
use super::node::Node;
use super::replies::{Reply, ReplyChannels, WriteResult};
use super::writer::session::Session;

/// Permits of each class, in KiB: 64 MiB …
const PERMITS_KIB: usize = 64 << 10;
/// … and 4,096 writes, because each takes at least this much.
const LEAST_KIB: usize = 16;
/// One group commit takes at most so many writes …
const BATCH_WRITES: usize = 512;
/// … or about so many bytes, so that the first of them does not wait for ever.
const BATCH_BYTES: usize = 8 << 20;
/// How often the writer probes whether it can write again.
pub(crate) const PROBE_EVERY: Duration = Duration::from_secs(1);

/// A write with its own transaction. It replies to its caller itself, and returns the error for the writer.
pub(crate) type ExclusiveWrite = Box<dyn FnOnce(&mut Session<'_>) -> Option<rusqlite::Error> + Send>;

/// A write other than an append in a group commit. It runs again if another write of the first commit failed.
pub(crate) type SharedWrite = Box<dyn Fn(&mut Session<'_>) -> rusqlite::Result<()> + Send>;

/// A write in a group commit.
#[expect(clippy::large_enum_variant, reason = "nearly every write is an append")]
pub(crate) enum Write {
    Append(Append, Node),
    Shared { work: SharedWrite, bytes: usize },
}

impl Write {
    fn bytes(&self) -> usize {
        match self {
            Self::Append(append, _) => append.events.len() + append.snapshot.as_ref().map_or(0, bytes::Bytes::len),
            Self::Shared { bytes, .. } => *bytes,
        }
    }

    /// Whether it may be refused by load shedding.
    fn is_refusable(&self) -> bool {
        match self {
            Self::Append(append, _) => append.refusable,
            Self::Shared { .. } => false,
        }
    }
}

/// A write and its waiting caller.
pub(crate) struct Queued {
    pub(crate) write: Write,
    pub(crate) reply: Reply,
    queued_at: Instant,
    /// Released when the write has been answered.
    _permit: OwnedSemaphorePermit,
}

#[expect(clippy::large_enum_variant, reason = "nearly every job is an append")]
enum Job {
    Write(Queued),
    Exclusive(ExclusiveWrite),
    Close(oneshot::Sender<()>),
}

/// The next work of the writer thread.
pub(crate) enum Work {
    Writes(Vec<Queued>),
    Exclusive(ExclusiveWrite),
    /// Everything before it is written; close cleanly and reply.
    Close(oneshot::Sender<()>),
    /// End now, as if the process had died.
    Stop,
    /// The queue is empty and the last write failed: try one.
    Probe,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// When the oldest write that is taken and not answered was queued.
    in_flight_since: Option<Instant>,
    writer_sleeps: bool,
    /// No more jobs are accepted.
    closing: bool,
    stop: bool,
    /// The error of the last write, if it failed.
    failure: Option<StoreError>,
}

impl State {
    /// How long the oldest unanswered write has waited.
    fn delay(&self, now: Instant) -> Duration {
        let queued = self.jobs.iter().find_map(|job| match job {
            Job::Write(queued) => Some(queued.queued_at),
            Job::Exclusive(_) | Job::Close(_) => None,
        });
        self.in_flight_since.or(queued).map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    fn overload(&self, now: Instant, max_delay: Duration) -> Option<StoreError> {
        let delay = self.delay(now);
        (delay > max_delay).then(|| overloaded(delay))
    }
}

/// The queue between async callers and the writer thread.
pub(crate) struct WriteQueue {
    state: Mutex<State>,
    wake: Condvar,
    new_work: Arc<Semaphore>,
    reserve: Arc<Semaphore>,
    max_delay: Duration,
    reply_channels: ReplyChannels,
}

impl WriteQueue {
    pub(crate) fn new(max_delay: Duration) -> Self {
        Self {
            state: Mutex::default(),
            wake: Condvar::new(),
            new_work: Arc::new(Semaphore::new(PERMITS_KIB)),
            reserve: Arc::new(Semaphore::new(PERMITS_KIB)),
            max_delay,
            reply_channels: ReplyChannels::default(),
        }
    }

    pub(crate) async fn append(&self, append: Append, node: Node) -> Result<Appended, StoreError> {
        let appended = self.write(Write::Append(append, node)).await?;
        appended.ok_or_else(|| self.lost())
    }

    /// Runs a write in a group commit; `bytes` is about what it writes. It may run twice, and the second result counts.
    pub(crate) fn write_shared<T: Send + 'static>(
        self: &Arc<Self>,
        bytes: usize,
        work: impl Fn(&mut Session<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<T> {
        let queue = Arc::clone(self);
        Box::pin(async move {
            let result = Arc::new(Mutex::new(None));
            let slot = Arc::clone(&result);
            let work: SharedWrite = Box::new(move |session| {
                *slot.lock() = Some(work(session)?);
                Ok(())
            });
            queue.write(Write::Shared { work, bytes }).await?;
            let value = result.lock().take();
            value.ok_or_else(|| queue.lost())
        })
    }

    /// Runs a write in a transaction of its own, between two group commits.
    pub(crate) fn write_exclusive<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut Session<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<T> {
        let queue = Arc::clone(self);
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let work: ExclusiveWrite = Box::new(move |session| {
                let result = work(session);
                let (result, error) = match result {
                    Ok(value) => (Ok(value), None),
                    Err(error) => (Err(store_error(&error)), Some(error)),
                };
                // A caller that has gone away needs no answer.
                reply.send(result).ok();
                error
            });
            queue.push_exclusive(work)?;
            answer.await.unwrap_or_else(|_| Err(queue.lost()))
        })
    }

    /// Waits for a permit, then for the commit. Once queued it is written even if the caller stops waiting.
    async fn write(&self, write: Write) -> WriteResult {
        let refusable = write.is_refusable();
        let permit = self.permit(write.bytes(), refusable).await?;
        let (reply, answer) = self.reply_channels.reply();
        {
            let mut state = self.state.lock();
            let queued_at = Instant::now();
            if state.closing {
                return Err(StoreError::Closed);
            }
            if refusable && let Some(error) = state.overload(queued_at, self.max_delay) {
                return Err(error);
            }
            state.jobs.push_back(Job::Write(Queued { write, reply, queued_at, _permit: permit }));
            self.wake_writer(state);
        }
        answer.await.unwrap_or_else(|_| Err(self.lost()))
    }

    async fn permit(&self, bytes: usize, refusable: bool) -> Result<OwnedSemaphorePermit, StoreError> {
        let kib = u32::try_from((bytes / 1024).clamp(LEAST_KIB, PERMITS_KIB)).unwrap_or(u32::MAX);
        let permits = if refusable { &self.new_work } else { &self.reserve };
        if let Ok(permit) = Arc::clone(permits).try_acquire_many_owned(kib) {
            return Ok(permit);
        }
        let wait = Arc::clone(permits).acquire_many_owned(kib);
        if !refusable {
            return wait.await.map_err(|_| StoreError::Closed);
        }
        match tokio::time::timeout(self.max_delay, wait).await {
            Ok(permit) => permit.map_err(|_| StoreError::Closed),
            Err(_) => Err(overloaded(self.max_delay)),
        }
    }

    fn push_exclusive(&self, work: ExclusiveWrite) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        if state.closing {
            return Err(StoreError::Closed);
        }
        state.jobs.push_back(Job::Exclusive(work));
        self.wake_writer(state);
        Ok(())
    }

    /// Accepts no more jobs; the receiver resolves when the writer has ended.
    pub(crate) fn close(&self) -> oneshot::Receiver<()> {
        let (reply, answer) = oneshot::channel();
        let mut state = self.state.lock();
        if !state.closing {
            state.closing = true;
            state.jobs.push_back(Job::Close(reply));
            self.wake_writer(state);
        }
        answer
    }

    /// Ends the writer after its current work; queued jobs are dropped.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.closing = true;
        state.stop = true;
        self.wake.notify_all();
    }

    /// Called when the writer thread ends, also by a panic: no caller may wait for it any more.
    pub(crate) fn end(&self) {
        let dropped = {
            let mut state = self.state.lock();
            state.closing = true;
            state.in_flight_since = None;
            std::mem::take(&mut state.jobs)
        };
        drop(dropped);
        self.new_work.close();
        self.reserve.close();
    }

    /// Whether a write would be accepted now.
    pub(crate) fn ready(&self) -> Result<(), StoreError> {
        let state = self.state.lock();
        if state.closing {
            return Err(StoreError::Closed);
        }
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        state.overload(Instant::now(), self.max_delay).map_or(Ok(()), Err)
    }

    /// The error of a write whose answer never came.
    pub(crate) fn lost(&self) -> StoreError {
        self.state.lock().failure.clone().unwrap_or(StoreError::Closed)
    }

    /// The writer reports its last transaction.
    pub(crate) fn finished(&self, failure: Option<StoreError>) {
        let mut state = self.state.lock();
        state.in_flight_since = None;
        state.failure = failure;
        // Here and not where work is taken: writes that are taken no longer wait, and at rest none do.
        metrics::gauge!(crate::metric_definitions::QUEUE_DEPTH).set(state.jobs.len() as f64);
    }

    /// Blocks the writer thread until there is work.
    pub(crate) fn take(&self) -> Work {
        let mut state = self.state.lock();
        loop {
            if state.stop {
                return Work::Stop;
            }
            if !state.jobs.is_empty() {
                break;
            }
            state.writer_sleeps = true;
            let probe = state.failure.is_some();
            if probe {
                if self.wake.wait_for(&mut state, PROBE_EVERY).timed_out() && state.jobs.is_empty() && !state.stop {
                    state.writer_sleeps = false;
                    return Work::Probe;
                }
            } else {
                self.wake.wait(&mut state);
            }
            state.writer_sleeps = false;
        }
        self.take_jobs(self.wait_for_group(state))
    }

    /// Group commit: on a busy core the writer is often woken between the first and the second of many senders. Yielding
    /// while the queue still grows makes one commit of what would be many; on an idle core it costs a microsecond.
    fn wait_for_group<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let mut seen = 0;
        while state.jobs.len() > seen && state.jobs.len() < BATCH_WRITES {
            seen = state.jobs.len();
            MutexGuard::unlocked(&mut state, std::thread::yield_now);
        }
        state
    }

    fn take_jobs(&self, mut state: MutexGuard<'_, State>) -> Work {
        let mut writes = Vec::with_capacity(state.jobs.len().min(BATCH_WRITES));
        let mut bytes = 0;
        while writes.len() < BATCH_WRITES && bytes < BATCH_BYTES {
            match state.jobs.pop_front() {
                Some(Job::Write(queued)) => {
                    bytes += queued.write.bytes();
                    writes.push(queued);
                }
                Some(other) if !writes.is_empty() => {
                    state.jobs.push_front(other);
                    break;
                }
                Some(Job::Exclusive(work)) => return Work::Exclusive(work),
                Some(Job::Close(reply)) => return Work::Close(reply),
                None => break,
            }
        }
        state.in_flight_since = writes.first().map(|first| first.queued_at);
        let waited = state.delay(Instant::now());
        metrics::histogram!(crate::metric_definitions::QUEUE_DELAY_SECONDS).record(waited.as_secs_f64());
        Work::Writes(writes)
    }

    fn wake_writer(&self, state: MutexGuard<'_, State>) {
        let sleeps = state.writer_sleeps;
        drop(state);
        if sleeps {
            self.wake.notify_one();
        }
    }
}

fn overloaded(delay: Duration) -> StoreError {
    StoreError::Overloaded { delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX) }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use switchboard_engine::ids::{Fence, Seq, TaskKey};
    use switchboard_engine::store::{AppendGuard, KnownVersion, RowPatch, SideWrites};

    use super::*;

    fn append(queue: &WriteQueue) -> impl Future<Output = Result<Appended, StoreError>> {
        let known = KnownVersion { key: TaskKey(1), version: Seq(1), fence: Fence(1) };
        let append = Append {
            guard: AppendGuard::Inbox(known),
            events: bytes::Bytes::new(),
            count: 0,
            row: RowPatch::default(),
            snapshot: None,
            note: None,
            sides: SideWrites::default(),
            refusable: true,
        };
        queue.append(append, Node::all(1, 1).remove(0))
    }

    #[tokio::test]
    async fn shared_writes_join_the_group_commit_of_the_appends_around_them() {
        let queue = Arc::new(WriteQueue::new(Duration::ZERO));
        let shared = |bytes| queue.write_shared(bytes, |_| Ok(()));
        // Each is queued when it is first polled.
        assert!(append(&queue).now_or_never().is_none());
        assert!(shared(100).now_or_never().is_none());
        assert!(shared(BATCH_BYTES).now_or_never().is_none());
        // The store is behind by now, which sheds new work and nothing else.
        while queue.ready().is_ok() {}
        assert!(matches!(append(&queue).now_or_never(), Some(Err(StoreError::Overloaded { .. }))));
        assert!(shared(100).now_or_never().is_none());

        let Work::Writes(first) = queue.take() else { panic!("no writes") };
        let appends: Vec<bool> = first.iter().map(|queued| matches!(queued.write, Write::Append(..))).collect();
        assert_eq!(appends, [true, false, false], "in order, until there are bytes enough");
        let Work::Writes(second) = queue.take() else { panic!("no writes") };
        assert_eq!(second.len(), 1);
    }
}
