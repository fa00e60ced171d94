//! A turn: one run of an agent on a message, and the owner appends of its output.
//!
//! One spawned driver holds both. The agent is polled first, so whatever it produces before it first waits goes into
//! one append; during an append the agent goes on and its output gathers for the next batch.
//!
//! Whether the driver goes on or leaves the task is decided in [`Driver::next_step`] under the task's lock, so that an
//! answer finds either a driver that will take it or none at all.

mod conclude;
mod input;
mod limits;
mod start;
mod timers;
mod wakeup;

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use switchboard_admission::CounterPermit;

use crate::admission::Permit;
use crate::agent::{AgentError, Cause};
use crate::append::PendingAppend;
use crate::batch::Batch;
use crate::engine::EngineState;
use crate::event::Event;
use crate::fold::NumberedMessage;
use crate::handle::TaskHandle;
use crate::live_task::{Core, DrivenTurn, LiveTask, RunOutput, RunProgress};
use crate::manifest::Execution;
use crate::output::push;
use crate::queue::QueuePriority;
use crate::store::{Phase, RowState, SideWrites, StoreError};

pub(crate) use conclude::panic_text;
use conclude::{Outcome, conclude, end_stopped, force_end};
pub(crate) use input::{TurnInput, began};
use timers::{Alarm, Timers};
pub(crate) use wakeup::Wakeup;

/// How long a turn waits before it offers its output to a failing store again.
const RETRY: Duration = Duration::from_millis(500);

/// Runs turns of one task until it ends, parks, or is taken away. `sides` go with the first append.
///
/// A turn may last for hours, and many at once, so its future holds little: an `async fn` would keep room for its arguments
/// beside what they are moved into.
pub(crate) fn drive(
    engine: Arc<EngineState>,
    live: Arc<LiveTask>,
    permit: Permit,
    begin: TurnInput,
    sides: SideWrites,
) -> impl Future<Output = ()> + Send + 'static {
    let busy = Some(engine.admission.busy.acquire());
    let (next, permit, timers) = (Some(begin), Some(permit), Timers::default());
    let mut driver = Driver { engine, live, next, run_number: 0, permit, busy, sides, timers, unload: false };
    async move {
        // The agent's own panics stay in its run. This one is the kernel's, and must not leave a turn without a driver.
        if let Err(panic) = AssertUnwindSafe(driver.run_all()).catch_unwind().await {
            driver.leave_after_panic(panic_text(panic.as_ref()));
        }
        (driver.permit, driver.busy) = (None, None);
        let is_done = driver.live.core.lock().is_done();
        if is_done {
            driver.engine.live.forget(&driver.live.task.id);
        } else {
            driver.engine.recover_dropped(&driver.live).await;
        }
    }
}

struct Driver {
    engine: Arc<EngineState>,
    live: Arc<LiveTask>,
    /// What the next run begins with; nothing if the task is left.
    next: Option<TurnInput>,
    run_number: u64,
    permit: Option<Permit>,
    busy: Option<CounterPermit>,
    sides: SideWrites,
    timers: Timers,
    /// The agent has waited for its answer for as long as it is kept in memory (`Settings::park`).
    unload: bool,
}

impl Driver {
    async fn run_all(&mut self) {
        while let Some(run) = self.begin() {
            self.run(run).await;
            self.engine.end_grant(&self.live);
        }
    }

    /// Leaves the task for recovery, which gives up one that panics each time; or gives it up if it is not in the log.
    fn leave_after_panic(&mut self, panic: &str) {
        tracing::error!(task = %self.live.task.id, panic, "the driver of a turn panicked, this is a bug");
        self.engine.end_grant(&self.live);
        let is_stored = {
            let mut core = self.live.core.lock();
            // Unless another driver has the turn by now.
            if self.run_number == 0 || core.turn.is_run(self.run_number) {
                core.abandon_turn();
            }
            core.key.is_some()
        };
        match is_stored {
            true => self.live.wake(),
            false => self.live.give_up(StoreError::Failed(format!("the turn panicked: {panic}"))),
        }
    }

    /// Begins the next run of the agent, if there is one.
    fn begin(&mut self) -> Option<Run> {
        let mut begin = self.next.take()?;
        let Some(hosted) = self.live.hosted.clone() else {
            self.live.core.lock().turn.leave();
            return None;
        };
        let served = begin.served.take().unwrap_or_else(|| hosted.served());
        self.run_number = {
            let mut core = self.live.core.lock();
            if core.is_done() {
                // Canceled between the claim of its turn and this line.
                core.turn.leave();
                return None;
            }
            core.served = Some(served.clone());
            core.output.run = RunOutput::default();
            // Refused if the turn was taken over or lost between its claim and this line.
            core.turn.begin_run().ok()?
        };
        let handle = TaskHandle { engine: self.engine.clone(), live: self.live.clone(), run: self.run_number };
        let begun = begin.begun.take();
        // Boxed, because this future outlasts what the agent takes out of it.
        let start = Box::new((begin.turn(&self.live), handle));
        Some(Run::new(async move {
            let mut running = served.agent.run_boxed(start);
            let first = futures_util::poll!(&mut running);
            drop(begun);
            match first {
                Poll::Ready(done) => done,
                Poll::Pending => running.await,
            }
        }))
    }

    /// One run of the agent, and what comes of it.
    async fn run(&mut self, run: Run) {
        let mut run = Some(run);
        let mut flush: Option<BoxFuture<'static, Result<(), StoreError>>> = None;
        self.timers = Timers::default();
        self.unload = false;
        self.busy.get_or_insert_with(|| self.engine.admission.busy.acquire());
        self.arm_limits();
        loop {
            tokio::select! {
                biased;
                result = poll_some(&mut run), if run.is_some() => {
                    run = None;
                    conclude(&self.engine, &self.live, self.run_number, result);
                }
                result = poll_some(&mut flush), if flush.is_some() => {
                    flush = None;
                    if let Err(error) = result {
                        self.handle_append_failure(error);
                    }
                }
                alarm = self.timers.next() => match alarm {
                    Alarm::Limits => self.check_limits(),
                    Alarm::Grace => {
                        run = None;
                        force_end(&self.engine, &self.live, self.run_number);
                    }
                    Alarm::Parked => self.unload = true,
                    Alarm::Retry => {}
                },
                () = self.live.output.notified() => {}
            }
            match self.next_step(run.is_some(), flush.is_some()) {
                NextStep::Leave => return,
                NextStep::Next(begin) => {
                    self.next = Some(*begin);
                    return;
                }
                NextStep::Flush => {
                    let (engine, live) = (self.engine.clone(), self.live.clone());
                    let sides = std::mem::take(&mut self.sides);
                    flush = Some(async move { live.flush(&engine, sides).await }.boxed());
                }
                NextStep::Queue(seq) => {
                    // On the heap: it is rare, and its room would be most of the turn's.
                    if Box::pin(self.queue_next(seq)).await {
                        return;
                    }
                }
                NextStep::Wait => {}
            }
        }
    }

    fn next_step(&mut self, running: bool, flushing: bool) -> NextStep {
        let live = self.live.clone();
        let mut guard = live.core.lock();
        let core = &mut *guard;
        if core.turn.lost().is_some() {
            return NextStep::Leave;
        }
        let Some(driven) = core.turn.driven_by(self.run_number) else {
            drop(guard);
            live.wake();
            return NextStep::Leave;
        };
        if let Some(permit) = driven.take_permit() {
            self.permit = Some(permit);
        }
        if driven.confirm_release() {
            self.permit = None;
        }
        let asks = driven.progress == RunProgress::Asking && core.row.state.is_interrupted();
        let is_without_permit = driven.is_without_permit();
        // Answered, but without a permit yet: output waits for it as well.
        let is_fenced = driven.fence != core.row.fence;
        let waits = core.row.phase == Phase::Parked || core.row.phase.is_queued();
        let done = core.is_done();
        live.write_children(&self.engine, core);
        let ends = core.output.state.is_terminal() && core.next_unread().is_none();
        if waits || ends {
            // The agent waits, or only the commit of its terminal event is left: neither needs a permit.
            self.permit = None;
        }
        let has_output = !core.output.batch.is_empty() && !done;
        let may_act = !flushing && (!is_fenced || done) && !self.timers.is_set(Alarm::Retry);
        if may_act && has_output {
            return NextStep::Flush;
        }
        if (may_act || done) && !flushing && !has_output && (!running || self.may_unload(core)) {
            return self.leave_or_go_on(core);
        }
        let stopping = done || core.output.stop.is_some();
        let served = core.served.as_ref();
        let is_elsewhere = served.is_some_and(|served| served.manifest.execution == Execution::Remote);
        drop(guard);
        self.set_timers(running, waits, stopping);
        // A shutdown does not wait for an answer (the next process asks again), nor for a turn that waits for another or
        // follows one on another server.
        let rests = (asks || ((is_without_permit || is_elsewhere) && !has_output)) && !stopping;
        let counts = [self.busy.as_mut(), self.permit.as_mut().map(|permit| &mut permit.busy)];
        counts.into_iter().flatten().for_each(|busy| busy.set_held(!rests));
        NextStep::Wait
    }

    /// Whether the agent waits for an answer and need not do so in memory any longer.
    fn may_unload(&self, core: &Core) -> bool {
        let is_woken = core.turn.driven().is_some_and(DrivenTurn::has_granted_permit);
        self.unload && core.row.phase == Phase::Parked && !is_woken && core.output.stop.is_none()
    }

    /// The agent is gone, or can go, and everything it said is committed.
    fn leave_or_go_on(&mut self, core: &mut Core) -> NextStep {
        let next = if core.is_done() {
            None
        } else if let Some(reason) = core.output.stop {
            // It was stopped after it had asked and returned. The terminal event is output like any other.
            end_stopped(&self.engine, &self.live, core, reason);
            return if core.output.batch.is_empty() { NextStep::Wait } else { NextStep::Flush };
        } else if core.row.phase == Phase::Running && core.turn.progress().has_asked() && self.permit.is_some() {
            // It returned after asking, and the answer was handed to it: that is a run of its own.
            TurnInput::current(core)
        } else if core.turn.progress() == RunProgress::Over
            && let Some(next) = core.next_unread().cloned()
        {
            let hosted = self.live.hosted.as_ref();
            let permit = || hosted.and_then(|hosted| self.engine.try_permit(hosted, self.live.task.payer()));
            // A message that came during the last append may find the permit released.
            self.permit = self.permit.take().or_else(permit);
            if self.permit.is_none() {
                return NextStep::Queue(next.seq);
            }
            self.next_message(core, next)
        } else {
            None
        };
        match next {
            Some(begin) => NextStep::Next(Box::new(begin)),
            None => {
                core.turn.leave();
                NextStep::Leave
            }
        }
    }

    /// After `complete` with messages unread: the oldest of them is the next turn.
    fn next_message(&mut self, core: &mut Core, next: NumberedMessage) -> Option<TurnInput> {
        push(&self.engine, &self.live, core, Event::Taken(next.seq)).ok()?;
        core.output.taken = next.seq;
        Some(TurnInput::new(next, Cause::Next, core.fold.kernel.saved.clone()))
    }

    /// The same without a free permit: the task is queued. False if that could not be stored yet.
    async fn queue_next(&mut self, seq: u64) -> bool {
        let engine = self.engine.clone();
        let decide = |core: &mut Core| {
            let mut row = RowState { phase: Phase::Queued, expires_at: engine.deadline_of(core), ..core.row.clone() };
            row.fence = row.fence.next();
            let may_queue = !core.is_done() && core.output.stop.is_none();
            may_queue.then(|| PendingAppend::inbox(vec![Event::Taken(seq)], row))
        };
        match self.live.inbox_if(&engine, decide).await {
            Ok(true) => {
                self.live.core.lock().turn.leave();
                engine.enqueue_again(QueuePriority::of_new(&self.live.task), self.live.clone());
                return true;
            }
            Ok(false) => self.live.output.notify_one(),
            Err(error) => self.handle_append_failure(error),
        }
        false
    }

    fn set_timers(&mut self, running: bool, waits: bool, stopping: bool) {
        if waits {
            self.busy = None;
            self.timers.clear(Alarm::Limits);
            if !self.unload && !self.timers.is_set(Alarm::Parked) {
                self.timers.set(Alarm::Parked, self.engine.clock.sleep(self.engine.settings.park));
                self.live.output.notify_one();
            }
        } else if self.busy.is_none() {
            self.timers.clear(Alarm::Parked);
            self.unload = false;
            self.busy = Some(self.engine.admission.busy.acquire());
            self.arm_limits();
        }
        if stopping && running && !self.timers.is_set(Alarm::Grace) {
            self.timers.set(Alarm::Grace, self.engine.clock.sleep(self.engine.settings.cancel_grace));
            self.live.output.notify_one();
        }
    }

    /// After a failed append: retry later, or mark the turn as lost.
    fn handle_append_failure(&mut self, error: StoreError) {
        let mut core = self.live.core.lock();
        let is_over = !core.turn.is_run(self.run_number);
        if is_over || (matches!(error, StoreError::Fenced) && !core.is_done()) {
            // Claimed elsewhere, or answered and waiting for a permit: the next step tells which.
            return;
        }
        let fatal = matches!(error, StoreError::Ended | StoreError::Missing | StoreError::Closed);
        if fatal && core.is_done() {
            // Ended by another writer: the agent has its grace period to stop, and its output is dropped.
            core.output.batch = Batch::default();
            drop(core);
            self.live.wake();
            return;
        }
        if fatal || core.key.is_none() {
            drop(core);
            self.live.give_up(error);
            return;
        }
        if let Some(driven) = core.turn.driven_mut() {
            driven.unstored = Some(error.clone());
        }
        drop(core);
        self.live.wake();
        tracing::warn!(task = %self.live.task.id, %error, "output could not be stored, trying again");
        self.timers.set(Alarm::Retry, self.engine.clock.sleep(RETRY));
        self.live.output.notify_one();
    }
}

enum NextStep {
    /// No driver holds the task from now on.
    Leave,
    /// This run is over; the next one begins.
    Next(Box<TurnInput>),
    Flush,
    /// The next turn is this message's, and has to wait for a permit.
    Queue(u64),
    Wait,
}

/// The agent's future. Panics of the agent's code, when polled or dropped, stay in here.
struct Run(Option<Pin<Box<dyn Future<Output = Outcome> + Send>>>);

impl Run {
    fn new(work: impl Future<Output = Result<(), AgentError>> + Send + 'static) -> Self {
        Self(Some(Box::pin(AssertUnwindSafe(work).catch_unwind())))
    }
}

impl Future for Run {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        match &mut self.0 {
            Some(work) => work.poll_unpin(context),
            None => Poll::Pending,
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let work = self.0.take();
        if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(|| drop(work))) {
            tracing::error!(panic = panic_text(panic.as_ref()), "an agent panicked when it was dropped");
        }
    }
}

/// Polls what is there; pending if nothing is.
async fn poll_some<F: Future + Unpin>(slot: &mut Option<F>) -> F::Output {
    match slot {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

impl LiveTask {
    /// The task never came to be, or its turn cannot go on here.
    pub(crate) fn give_up(&self, error: StoreError) {
        self.core.lock().turn.give_up(error);
        self.wake();
    }
}
