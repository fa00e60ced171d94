//! What waits for the writer: bounded in number and bytes, in order, and honest about how far behind it is.
//!
//! New work waits for room and is refused once the store is too far behind. Output, endings and cancels have room of
//! their own, so that a flood of new work can never keep a task from ending.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use switchboard_engine::store::{Append, Appended, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::replies::{Reply, ReplyChannels, WriteResult};
use super::writer::session::Session;

/// Room for 64 MiB of each class, counted in KiB …
const ROOM_KIB: usize = 64 << 10;
/// … and for 4,096 writes of each class, because each takes at least this much of it.
const LEAST_KIB: usize = 16;
/// One transaction takes at most so many writes …
const BATCH_WRITES: usize = 512;
/// … or about so many bytes, so that the first of them does not wait for ever.
const BATCH_BYTES: usize = 8 << 20;
/// How often the writer tries by itself whether it can write again.
pub(crate) const PROBE_EVERY: Duration = Duration::from_secs(1);

/// A write that has its own transaction; replies to whoever asked, and returns the error for the writer to judge.
pub(crate) type ExclusiveWrite = Box<dyn FnOnce(&mut Session<'_>) -> Option<rusqlite::Error> + Send>;

/// A write that is no append and shares its commit. It is run again if what it shared the first commit with broke that.
pub(crate) type SharedWrite = Box<dyn Fn(&mut Session<'_>) -> rusqlite::Result<()> + Send>;

/// What shares a commit with whatever else is to be written.
#[expect(clippy::large_enum_variant, reason = "nearly every write is an append")]
pub(crate) enum Write {
    Append(Append),
    Shared { work: SharedWrite, bytes: usize },
}

impl Write {
    fn bytes(&self) -> usize {
        match self {
            Self::Append(append) => append.events.len() + append.snapshot.as_ref().map_or(0, bytes::Bytes::len),
            Self::Shared { bytes, .. } => *bytes,
        }
    }

    /// Whether it may be refused when the store is behind.
    fn is_refusable(&self) -> bool {
        match self {
            Self::Append(append) => append.refusable,
            Self::Shared { .. } => false,
        }
    }
}

/// A write and who waits for it.
pub(crate) struct Queued {
    pub(crate) write: Write,
    pub(crate) reply: Reply,
    queued_at: Instant,
    /// Given back when the write has been answered.
    _room: OwnedSemaphorePermit,
}

#[expect(clippy::large_enum_variant, reason = "nearly every job is an append")]
enum Job {
    Write(Queued),
    Exclusive(ExclusiveWrite),
    Close(oneshot::Sender<()>),
}

/// What the writer does next.
pub(crate) enum Work {
    Writes(Vec<Queued>),
    Exclusive(ExclusiveWrite),
    /// Everything before it is written; end cleanly and tell.
    Close(oneshot::Sender<()>),
    /// End now, as if the process had died.
    Stop,
    /// Nothing came for a while and the last write had failed: try one.
    Probe,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// When the oldest write was queued that the writer has taken and not yet answered.
    in_flight_since: Option<Instant>,
    writer_sleeps: bool,
    /// No more jobs are taken.
    closing: bool,
    stop: bool,
    /// What the last write came to, if it failed.
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

/// The queue between the async world and the writer thread.
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
            new_work: Arc::new(Semaphore::new(ROOM_KIB)),
            reserve: Arc::new(Semaphore::new(ROOM_KIB)),
            max_delay,
            reply_channels: ReplyChannels::default(),
        }
    }

    /// Writes events.
    pub(crate) async fn append(&self, append: Append) -> Result<Appended, StoreError> {
        let appended = self.write(Write::Append(append)).await?;
        appended.ok_or_else(|| self.lost())
    }

    /// Does something else in one commit with what is written at that moment; `bytes` is about what it writes.
    pub(crate) async fn shared(&self, work: SharedWrite, bytes: usize) -> Result<(), StoreError> {
        self.write(Write::Shared { work, bytes }).await.map(|_| ())
    }

    /// Waits for room, then for the commit. Once queued it is written even if the caller stops waiting.
    async fn write(&self, write: Write) -> WriteResult {
        let refusable = write.is_refusable();
        let room = self.room(write.bytes(), refusable).await?;
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
            state.jobs.push_back(Job::Write(Queued { write, reply, queued_at, _room: room }));
            self.wake_writer(state);
        }
        answer.await.unwrap_or_else(|_| Err(self.lost()))
    }

    async fn room(&self, bytes: usize, refusable: bool) -> Result<OwnedSemaphorePermit, StoreError> {
        let kib = u32::try_from((bytes / 1024).clamp(LEAST_KIB, ROOM_KIB)).unwrap_or(u32::MAX);
        let room = if refusable { &self.new_work } else { &self.reserve };
        if let Ok(permit) = Arc::clone(room).try_acquire_many_owned(kib) {
            return Ok(permit);
        }
        let wait = Arc::clone(room).acquire_many_owned(kib);
        if !refusable {
            return wait.await.map_err(|_| StoreError::Closed);
        }
        match tokio::time::timeout(self.max_delay, wait).await {
            Ok(permit) => permit.map_err(|_| StoreError::Closed),
            Err(_) => Err(overloaded(self.max_delay)),
        }
    }

    /// Queues a write that has its own transaction.
    pub(crate) fn exclusive(&self, work: ExclusiveWrite) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        if state.closing {
            return Err(StoreError::Closed);
        }
        state.jobs.push_back(Job::Exclusive(work));
        self.wake_writer(state);
        Ok(())
    }

    /// Takes no more jobs and tells when the writer has ended; at once if it has ended before.
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

    /// Ends the writer after what it is doing now; what is queued is dropped.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.closing = true;
        state.stop = true;
        self.wake.notify_all();
    }

    /// Called when the writer thread ends for whatever reason: nobody may wait for it any more.
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

    /// Why an answer never came.
    pub(crate) fn lost(&self) -> StoreError {
        self.state.lock().failure.clone().unwrap_or(StoreError::Closed)
    }

    /// The writer tells what its last transaction came to.
    pub(crate) fn finished(&self, failure: Option<StoreError>) {
        let mut state = self.state.lock();
        state.in_flight_since = None;
        state.failure = failure;
        // Here and not where work is taken: what is taken does not wait any more, and at rest nothing does.
        metrics::gauge!(crate::metric_definitions::QUEUE_DEPTH).set(state.jobs.len() as f64);
    }

    /// Blocks the writer until there is something to do.
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

    /// On a busy core the writer is often woken between the first and the second of many senders. Standing back while
    /// the queue still grows makes one commit of what would be many; on an idle core it costs a microsecond.
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
    use switchboard_a2a::{TaskState, Timestamp};
    use switchboard_engine::ids::{Fence, Seq, TaskKey};
    use switchboard_engine::store::{Guard, Phase, RowState, Sides};

    use super::*;

    fn append() -> Append {
        let row = RowState {
            state: TaskState::Working,
            status_at: Timestamp(1),
            phase: Phase::Running,
            fence: Fence(1),
            expires_at: None,
            hidden: false,
            recoveries: 0,
        };
        let guard = Guard::Inbox { key: TaskKey(1), version: Seq(1) };
        let sides = Sides::default();
        Append { guard, events: bytes::Bytes::new(), count: 0, row, snapshot: None, note: None, sides, refusable: true }
    }

    #[tokio::test]
    async fn what_is_no_append_joins_the_commit_of_the_appends_around_it() {
        let queue = WriteQueue::new(Duration::ZERO);
        let shared = |bytes| queue.shared(Box::new(|_| Ok(())), bytes);
        // Each is queued when it is first asked how far it is.
        assert!(queue.append(append()).now_or_never().is_none());
        assert!(shared(100).now_or_never().is_none());
        assert!(shared(BATCH_BYTES).now_or_never().is_none());
        // The store is behind by now, which keeps new work out and nothing else.
        while queue.ready().is_ok() {}
        assert!(matches!(queue.append(append()).now_or_never(), Some(Err(StoreError::Overloaded { .. }))));
        assert!(shared(100).now_or_never().is_none());

        let Work::Writes(first) = queue.take() else { panic!("no writes") };
        let appends: Vec<bool> = first.iter().map(|queued| matches!(queued.write, Write::Append(_))).collect();
        assert_eq!(appends, [true, false, false], "in order, until there are bytes enough");
        let Work::Writes(second) = queue.take() else { panic!("no writes") };
        assert_eq!(second.len(), 1);
    }
}
