//! A turn: an agent at work on one message, and its output on its way into the log.
//!
//! One piece of spawned work holds both. The agent is polled first, so whatever it produces before it first waits goes
//! into one append; while an append is under way the agent goes on and its output gathers for the next one.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use switchboard_a2a::{Message, Role, TaskState, Timestamp};

use crate::agent::{AgentError, Cause, Turn};
use crate::append::{Class, Writing};
use crate::burst::Burst;
use crate::caps::{Busy, Permit};
use crate::clock::later;
use crate::engine::Inner;
use crate::event::{Event, Received};
use crate::handle::{Stopped, TaskHandle, push, push_status};
use crate::live::{Core, LiveTask};
use crate::metric_definitions as metric;
use crate::reason::Reason;
use crate::recover::NotWritten;
use crate::store::{Phase, SendRecord, StoreError};

/// How long a turn waits before it offers its output to a failing store again.
const RETRY: std::time::Duration = std::time::Duration::from_millis(500);

/// What a turn begins with.
pub(crate) struct Begin {
    received: Arc<Received>,
    cause: Cause,
    saved: Option<switchboard_a2a::Json>,
}

impl Begin {
    pub(crate) fn new(received: Arc<Received>, cause: Cause, saved: Option<switchboard_a2a::Json>) -> Self {
        Self { received, cause, saved }
    }

    fn turn(self, live: &LiveTask) -> Turn {
        Turn {
            message: self.received.message.clone(),
            cause: self.cause,
            saved: self.saved,
            caller: live.task.owner.clone(),
            accepted_output_modes: self.received.accepted_output_modes.clone(),
            metadata: self.received.metadata.clone(),
        }
    }
}

/// Runs turns of one task until it ends, parks, or is taken away. `record` goes with the first append.
pub(crate) async fn drive(
    engine: Arc<Inner>,
    live: Arc<LiveTask>,
    permit: Permit,
    begin: Begin,
    record: Option<SendRecord>,
) {
    let busy = Some(Busy::new(&engine));
    let mut driver = Driver { engine, live, permit: Some(permit), busy, record, alarm: None, alarm_is: Alarm::None };
    // A task can be canceled between the claim of its turn and this line.
    let mut next = Some(begin).filter(|_| !driver.live.core.lock().is_done());
    while let Some(begin) = next.take() {
        driver.run(begin).await;
        next = driver.next_turn();
    }
    let done = {
        let mut core = driver.live.core.lock();
        core.driven = false;
        core.is_done()
    };
    if done {
        driver.engine.live.forget(&driver.live.task.id);
    }
}

struct Driver {
    engine: Arc<Inner>,
    live: Arc<LiveTask>,
    permit: Option<Permit>,
    busy: Option<Busy>,
    record: Option<SendRecord>,
    alarm: Option<BoxFuture<'static, ()>>,
    alarm_is: Alarm,
}

/// What the driver's one timer stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Alarm {
    None,
    /// The task's deadline or idle limit may have passed.
    Limits,
    /// An agent that was told to stop has had its time.
    Grace,
    /// A parked agent has been kept long enough.
    Parked,
    /// A failing store is offered the output again.
    Retry,
}

type Run<'a> = Pin<Box<dyn Future<Output = Result<Result<(), AgentError>, Box<dyn Any + Send>>> + Send + 'a>>;

impl Driver {
    async fn run(&mut self, begin: Begin) {
        let Some(hosted) = self.live.hosted.clone() else { return };
        let handle = TaskHandle { engine: self.engine.clone(), live: self.live.clone() };
        let turn = begin.turn(&self.live);
        let work = async { hosted.agent.run_boxed(turn, handle).await };
        let mut run: Option<Run<'_>> = Some(Box::pin(AssertUnwindSafe(work).catch_unwind()));
        let mut flush: Option<BoxFuture<'static, Result<(), StoreError>>> = None;
        self.alarm = None;
        self.alarm_is = Alarm::None;
        self.arm_limits();
        loop {
            tokio::select! {
                biased;
                result = poll_some(&mut run), if run.is_some() => {
                    run = None;
                    self.conclude(result);
                }
                result = poll_some(&mut flush), if flush.is_some() => {
                    flush = None;
                    if let Err(error) = result && !self.survive(error) {
                        return;
                    }
                }
                () = poll_some(&mut self.alarm), if self.alarm.is_some() => {
                    let alarm = self.alarm_is;
                    self.alarm = None;
                    self.alarm_is = Alarm::None;
                    match alarm {
                        Alarm::Limits => self.check_limits(),
                        Alarm::Grace => {
                            run = None;
                            self.force_end();
                        }
                        Alarm::Parked => {
                            if self.put_away() {
                                return;
                            }
                        }
                        Alarm::Retry | Alarm::None => {}
                    }
                }
                () = self.live.output.notified() => {}
            }
            match self.look(run.is_some(), flush.is_some()) {
                Look::Over => return,
                Look::Flush => {
                    let (engine, live) = (self.engine.clone(), self.live.clone());
                    let record = self.record.take();
                    flush = Some(async move { live.flush(&engine, record).await }.boxed());
                }
                Look::Wait => {}
            }
        }
    }

    /// Decides what to do next from the task as it stands.
    fn look(&mut self, running: bool, flushing: bool) -> Look {
        let live = self.live.clone();
        let mut core = live.core.lock();
        let resumed = core.resume.take();
        if core.lost.is_some() {
            return Look::Over;
        }
        if resumed.is_some() && self.permit.is_none() {
            drop(core);
            self.permit = resumed;
            self.busy = Some(Busy::new(&self.engine));
            self.disarm(Alarm::Parked);
            core = live.core.lock();
        }
        let has_output = !core.output.burst.is_empty();
        if core.output.state.is_terminal() {
            // The agent has said its last; the commit needs no place to run.
            self.permit = None;
        }
        if !flushing && has_output && self.alarm_is != Alarm::Retry && !core.is_done() {
            return Look::Flush;
        }
        if !running && !flushing && (!has_output || core.is_done()) {
            return Look::Over;
        }
        let stopping = core.is_done() || core.output.stop.is_some();
        let parked = core.row.phase == Phase::Parked;
        drop(core);
        if stopping && running {
            self.arm(Alarm::Grace, self.engine.settings.cancel_grace);
        } else if parked && self.permit.take().is_some() {
            self.busy = None;
            self.arm(Alarm::Parked, self.engine.settings.park);
        }
        Look::Wait
    }

    fn arm(&mut self, alarm: Alarm, after: std::time::Duration) {
        if self.alarm_is != alarm {
            self.alarm_is = alarm;
            self.alarm = Some(self.engine.clock.sleep(after));
            // Polled on the next turn of the loop, so that it is registered with the clock.
            self.live.output.notify_one();
        }
    }

    fn disarm(&mut self, alarm: Alarm) {
        if self.alarm_is == alarm {
            self.alarm = None;
            self.alarm_is = Alarm::None;
            self.arm_limits();
        }
    }

    /// Sets the timer for the nearest of the task's limits.
    fn arm_limits(&mut self) {
        if let Some(at) = self.next_limit() {
            self.alarm_is = Alarm::Limits;
            self.alarm = Some(self.engine.clock.sleep_until(at.0));
        }
    }

    fn next_limit(&self) -> Option<(Timestamp, Reason)> {
        let settings = &self.engine.settings;
        let core = self.live.core.lock();
        // A task that is not committed yet was received when its row says.
        let begun = core.fold.inner.first_at.unwrap_or(core.row.status_at);
        let deadline = settings.deadline.map(|limit| (later(begun, limit), Reason::TimedOut));
        let idle = settings.idle.map(|limit| (later(core.last_event_at(), limit), Reason::Idle));
        match (deadline, idle) {
            (Some(deadline), Some(idle)) => Some(if deadline.0 <= idle.0 { deadline } else { idle }),
            (deadline, idle) => deadline.or(idle),
        }
    }

    fn check_limits(&mut self) {
        match self.next_limit() {
            Some((at, reason)) if at <= self.engine.clock.now() => {
                self.live.core.lock().output.stop.get_or_insert(reason);
                self.live.wake();
            }
            _ => self.arm_limits(),
        }
    }

    /// The agent has returned: if the task has not ended, this says how it ends.
    fn conclude(&self, result: Result<Result<(), AgentError>, Box<dyn Any + Send>>) {
        let mut core = self.live.core.lock();
        let output = &core.output;
        if output.state.is_terminal() || core.is_done() || core.lost.is_some() {
            return;
        }
        if let Some(reason) = output.stop {
            self.end_stopped(&mut core, reason);
            return;
        }
        let parked = output.state.is_interrupted();
        let (reason, text) = match result {
            Ok(Ok(())) if parked || output.turn_over => return,
            Ok(Ok(())) => (Reason::NoResult, "the agent ended without a result".to_owned()),
            Ok(Err(AgentError::Stopped(Stopped::TooLarge(problem)))) => (Reason::TooLarge, problem),
            Ok(Err(error)) => (Reason::AgentError, error.to_string()),
            Err(panic) => {
                tracing::error!(task = %self.live.task.id, agent = %self.live.task.agent, "an agent panicked");
                (Reason::Panic, format!("the agent panicked: {}", panic_text(panic.as_ref())))
            }
        };
        self.end(&mut core, TaskState::Failed, Some(text), reason);
    }

    /// An agent that did not stop in time is dropped and the task ended without it.
    fn force_end(&self) {
        let mut core = self.live.core.lock();
        if core.is_done() || core.output.state.is_terminal() {
            return;
        }
        let reason = core.output.stop.unwrap_or(Reason::CanceledByCaller);
        self.end_stopped(&mut core, reason);
    }

    fn end_stopped(&self, core: &mut Core, reason: Reason) {
        match reason {
            Reason::CanceledByCaller => self.end(core, TaskState::Canceled, None, reason),
            Reason::TimedOut => self.end(core, TaskState::Failed, Some("the task took too long".to_owned()), reason),
            _ => self.end(core, TaskState::Failed, Some("the agent went silent for too long".to_owned()), reason),
        }
    }

    fn end(&self, core: &mut Core, state: TaskState, text: Option<String>, reason: Reason) {
        let message = text.map(|text| Message::text(Role::Agent, text));
        let pushed = push_status(&self.engine, &self.live, core, state, message, Some(reason));
        debug_assert!(pushed.is_ok(), "an ending was refused: {pushed:?}");
    }

    /// What to do after a failed append; false if the turn cannot go on.
    fn survive(&mut self, error: StoreError) -> bool {
        let created = self.live.core.lock().key.is_some();
        let fatal = matches!(error, StoreError::Fenced | StoreError::Missing | StoreError::Closed);
        if fatal && self.live.core.lock().is_done() {
            // Ended by somebody else: the agent still has its grace to stop.
            self.live.core.lock().output.burst = Burst::default();
            return true;
        }
        if fatal || !created {
            self.live.give_up(error);
            return false;
        }
        tracing::warn!(task = %self.live.task.id, %error, "output could not be stored, trying again");
        self.arm(Alarm::Retry, RETRY);
        true
    }

    /// Puts a parked agent away, unless its answer came in the same moment.
    fn put_away(&mut self) -> bool {
        let mut core = self.live.core.lock();
        let still_parked = core.row.phase == Phase::Parked && core.resume.is_none();
        core.driven = !still_parked;
        still_parked
    }

    /// After `complete` with messages unread: the oldest of them is the next turn.
    fn next_turn(&mut self) -> Option<Begin> {
        let live = self.live.clone();
        let mut core = live.core.lock();
        if !std::mem::take(&mut core.output.turn_over) || core.is_done() || core.lost.is_some() {
            return None;
        }
        let taken = core.output.taken;
        let next = core.fold.inner.unread.iter().find(|unread| unread.seq > taken).cloned()?;
        // The place was given up when the agent said it was done; a message in the same moment is served even if
        // every place is taken by now.
        let place = self.permit.take();
        self.permit = place.or_else(|| self.engine.try_permit(live.hosted.as_ref()?, &live.task.owner));
        core.output.taken = next.seq;
        core.output.text_artifact = None;
        push(&self.engine, &live, &mut core, Event::Taken(next.seq)).ok()?;
        let saved = core.fold.inner.saved.clone();
        Some(Begin::new(next.received, Cause::Next, saved))
    }
}

enum Look {
    Over,
    Flush,
    Wait,
}

/// Polls what is there; pending if nothing is.
async fn poll_some<F: Future + Unpin>(slot: &mut Option<F>) -> F::Output {
    match slot {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// What a panic said.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

impl LiveTask {
    /// The task never came to be, or its turn cannot go on here.
    pub(crate) fn give_up(&self, error: StoreError) {
        self.core.lock().lost = Some(error);
        self.wake();
    }
}

impl Core {
    /// When the task last got an event, as near as its status tells.
    fn last_event_at(&self) -> Timestamp {
        self.output.status_at.max(self.last_append_at)
    }
}

impl Inner {
    /// Lets a parked task go on: in the agent that still waits, or in a new run.
    pub(crate) fn wake_turn(self: &Arc<Self>, live: Arc<LiveTask>, permit: Option<Permit>, question: Option<Message>) {
        let Some(permit) = permit else {
            self.enqueue(live);
            return;
        };
        let begin = {
            let mut core = live.core.lock();
            if core.is_done() {
                return;
            }
            core.turn_fence = core.row.fence;
            if core.driven {
                core.resume = Some(permit);
                None
            } else {
                core.driven = true;
                let current = core.fold.inner.current.clone();
                let saved = core.fold.inner.saved.clone();
                core.output.text_artifact = None;
                let cause = match question {
                    Some(question) => Cause::Answer { question: Some(question) },
                    None if core.fold.inner.first == current.as_ref().map_or(0, |current| current.seq) => Cause::Begin,
                    None => Cause::Answer { question: core.fold.inner.question.clone() },
                };
                current.map(|current| (permit, Begin::new(current.received, cause, saved)))
            }
        };
        live.wake();
        if let Some((permit, begin)) = begin {
            self.work.spawn(drive(self.clone(), live, permit, begin, None));
        }
    }

    pub(crate) fn enqueue(self: &Arc<Self>, live: Arc<LiveTask>) {
        live.core.lock().queued_at = Some(self.clock.now());
        self.caps.enqueue(live);
        // A place may have become free between the refusal and now.
        self.start_queued();
    }

    /// A queued task has got its place: claim it in the log, then run it.
    pub(crate) fn spawn_queued(self: &Arc<Self>, live: Arc<LiveTask>, permit: Permit) {
        let engine = self.clone();
        self.work.spawn(async move {
            let claimed = live.inbox::<(), NotWritten>(&engine, |core| {
                if core.row.phase != Phase::Queued {
                    return Err(NotWritten::NotNeeded);
                }
                let row =
                    crate::store::RowState { phase: Phase::Running, fence: core.row.fence.next(), ..core.row.clone() };
                let burst = Burst::default();
                Ok((Writing { burst, row, class: Class::Inbox, send: None, refusable: false }, ()))
            });
            match claimed.await {
                Ok(_) => {
                    let waited = {
                        let core = live.core.lock();
                        core.queued_at.map_or(0, |since| engine.clock.now().0 - since.0)
                    };
                    metrics::histogram!(metric::QUEUE_WAIT).record(waited as f64 / 1_000.0);
                    engine.wake_turn(live, Some(permit), None);
                }
                Err(NotWritten::NotNeeded) => {}
                Err(NotWritten::Store(error)) => {
                    tracing::warn!(task = %live.task.id, %error, "a queued task could not be claimed, trying again");
                    drop(permit);
                    engine.clock.sleep(RETRY).await;
                    engine.enqueue(live);
                }
            }
        });
    }
}
