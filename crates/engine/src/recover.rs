//! No task is left behind: what an earlier process was running or had queued is taken up again.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;

use switchboard_a2a::{Message, Role, TaskState};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::agent::{Recovery, TaskView};
use crate::append::{Class, Writing};
use crate::burst::Burst;
use crate::directory::Hosted;
use crate::engine::Inner;
use crate::error::Error;
use crate::event::Event;
use crate::hints::Hints;
use crate::ids::{Seq, TaskKey};
use crate::live::{Core, LiveTask};
use crate::metric_definitions as metric;
use crate::output::with_usage;
use crate::reason::Reason;
use crate::store::{Phase, RowState, Sides, StoreError, TaskRow};
use crate::turn::{self, Begin};

/// How many rows are looked at in one read.
const PAGE: usize = 256;
/// How long a fault of the store is waited out.
const PAUSE: Duration = Duration::from_secs(1);
/// How long an agent may take to say how to go on.
const PATIENCE: Duration = Duration::from_secs(60);

impl Inner {
    /// Takes up unfinished tasks in the background; the listener need not wait for it.
    pub(crate) fn spawn_recovery(self: &Arc<Self>) {
        let engine = self.clone();
        self.work.spawn(async move {
            let places = Arc::new(Semaphore::new(engine.settings.parallel_recoveries));
            let mut after = TaskKey(0);
            // The tasks of one conversation are taken up one after the other, as they came.
            let mut newest: HashMap<_, JoinHandle<()>> = HashMap::new();
            loop {
                let rows = match engine.store.unfinished(after, PAGE).await {
                    Ok(rows) => rows,
                    Err(error) => {
                        tracing::error!(%error, "unfinished tasks could not be read, trying again");
                        if engine.pause().await {
                            continue;
                        }
                        return;
                    }
                };
                let Some(last) = rows.last() else { return };
                after = last.key;
                for row in rows {
                    let place = tokio::select! {
                        place = places.clone().acquire_owned() => place,
                        () = engine.closing.cancelled() => return,
                    };
                    let task = engine.clone();
                    let conversation = (row.task.owner.clone(), row.task.agent.clone(), row.task.context.clone());
                    let before = newest.remove(&conversation);
                    let taken_up = engine.work.spawn(async move {
                        if let Some(before) = before {
                            // Whatever became of it.
                            let _ = before.await;
                        }
                        task.take_up(row).await;
                        drop(place);
                    });
                    newest.insert(conversation, taken_up);
                }
            }
        });
    }

    /// Takes one task up, for as long as it takes the store to let it.
    async fn take_up(self: Arc<Self>, row: TaskRow) {
        let mut claimed = false;
        while let Err(error) = self.try_take_up(&row, &mut claimed).await {
            tracing::error!(task = %row.task.id, %error, "a task could not be taken up, trying again");
            if !self.pause().await {
                return;
            }
        }
    }

    /// Waits a little; false if the server stops meanwhile.
    async fn pause(&self) -> bool {
        tokio::select! {
            () = self.clock.sleep(PAUSE) => true,
            () = self.closing.cancelled() => false,
        }
    }

    async fn try_take_up(self: &Arc<Self>, row: &TaskRow, claimed: &mut bool) -> Result<(), Error> {
        let live = match self.live.get(&row.task.id) {
            // Somebody has asked for it already.
            Some(live) => live,
            None => match self.store.load(&row.task.id).await.map_err(|error| Error::from_store(&error))? {
                Some(loaded) => self.adopt(loaded).await?,
                None => return Ok(()),
            },
        };
        let queued = {
            let core = live.core.lock();
            core.row.phase == Phase::Queued && core.row.recoveries == 0
        };
        if !queued {
            return self.clone().recover(live, claimed).await;
        }
        if live.hosted.is_none() {
            return self.end_unserved(&live, |core| core.row.phase == Phase::Queued).await;
        }
        self.enqueue_again(live);
        Ok(())
    }

    async fn end_unserved(&self, live: &LiveTask, due: impl Fn(&Core) -> bool) -> Result<(), Error> {
        let text = format!("agent {} is no longer served here", live.task.agent);
        self.end(live, TaskState::Failed, Some(text), Reason::Interrupted, due).await
    }

    /// A turn has lost its process: what becomes of it is for its agent to say. It is claimed once, however often the
    /// store fails on the way: only an agent that gets nowhere uses up its recoveries.
    async fn recover(self: Arc<Self>, live: Arc<LiveTask>, claimed: &mut bool) -> Result<(), Error> {
        let Some(hosted) = live.hosted.clone() else {
            return self.end_unserved(&live, lost).await;
        };
        let (canceled, recoveries) = {
            let core = live.core.lock();
            (core.fold.inner.cancel_requested, core.row.recoveries)
        };
        if canceled {
            return self.end(&live, TaskState::Canceled, None, Reason::CanceledByCaller, lost).await;
        }
        if !*claimed && recoveries >= self.settings.max_recoveries {
            let text = format!("given up after {recoveries} recoveries without progress");
            return self.end(&live, TaskState::Failed, Some(text), Reason::RecoveryLimit, lost).await;
        }
        if self.closing.is_cancelled() || !(*claimed || self.claim(&live).await?) {
            return Ok(());
        }
        *claimed = true;
        let Some(view) = view(&live) else {
            let text = "its first message is missing".to_owned();
            return self.end(&live, TaskState::Failed, Some(text), Reason::Interrupted, lost).await;
        };
        let decided = self.ask_agent(&hosted, &view).await;
        let outcome = outcome_label(&decided);
        tracing::info!(
            task = %live.task.id, agent = %live.task.agent, outcome, "a task that had lost its process was taken up"
        );
        metrics::counter!(metric::RECOVERIES, "outcome" => outcome).increment(1);
        let message = match decided {
            Recovery::Fail(text) => {
                return self.end(&live, TaskState::Failed, Some(text), Reason::Interrupted, lost).await;
            }
            Recovery::Resume => live.core.lock().fold.inner.current.clone(),
            Recovery::Restart => {
                let first = Seq(live.core.lock().fold.inner.first);
                self.received(&live, first).await.map_err(|error| Error::from_store(&error))?
            }
        };
        let begin = message.map(|message| Begin::recovered(&live.core.lock(), message));
        let Some(permit) = self.try_permit(&hosted, &live.task.owner) else {
            return self.wait_for_place(live, begin).await;
        };
        {
            let mut core = live.core.lock();
            // A stop that came meanwhile has marked the turn for the next process.
            if !lost(&core) || self.closing.is_cancelled() {
                return Ok(());
            }
            core.turn_fence = core.row.fence;
            core.driven = begin.is_some();
        }
        if let Some(begin) = begin {
            // On its own: the place among the recoveries is for the decision, not for the work.
            self.work.spawn(turn::drive(self.clone(), live, permit, begin, Sides::default()));
        }
        Ok(())
    }

    /// A recovered turn for which there is no place to run waits like any other.
    async fn wait_for_place(self: Arc<Self>, live: Arc<LiveTask>, begin: Option<Begin>) -> Result<(), Error> {
        let queued = live.inbox::<(), NotWritten>(&self, |core| {
            if !lost(core) {
                return Err(NotWritten::NotNeeded);
            }
            let fence = core.row.fence.next();
            let expires_at = self.deadline_of(core);
            let row = RowState { phase: Phase::Queued, fence, expires_at, ..core.row.clone() };
            Ok((
                Writing {
                    burst: Burst::default(),
                    row,
                    class: Class::Inbox,
                    sides: Sides::default(),
                    refusable: false,
                },
                (),
            ))
        });
        if NotWritten::or_error(queued.await)? {
            live.core.lock().recovered = begin;
            self.enqueue_again(live);
        }
        Ok(())
    }

    /// What the agent wants done; one that panics or hangs over the question cannot go on.
    async fn ask_agent(&self, hosted: &Hosted, view: &TaskView) -> Recovery {
        let asked = AssertUnwindSafe(async { hosted.agent.recover_boxed(view).await }).catch_unwind();
        let answer = tokio::select! {
            answer = asked => answer,
            () = self.clock.sleep(PATIENCE) => Ok(Recovery::Fail("the agent did not say how to go on".to_owned())),
        };
        answer.unwrap_or_else(|panic| {
            let text = turn::panic_text(panic.as_ref());
            Recovery::Fail(format!("the agent panicked when asked how to go on: {text}"))
        })
    }

    /// Marks a lost turn as ours and counts the attempt; false if it has ended in the meantime.
    async fn claim(&self, live: &LiveTask) -> Result<bool, Error> {
        let claimed = live.inbox::<(), NotWritten>(self, |core| {
            if !lost(core) {
                return Err(NotWritten::NotNeeded);
            }
            let mut row = core.row.clone();
            row.phase = Phase::Running;
            row.fence = row.fence.next();
            row.expires_at = None;
            row.recoveries += 1;
            let burst = Burst::of(vec![Event::Recovered]);
            Ok((Writing { burst, row, class: Class::Inbox, sides: Sides::default(), refusable: false }, ()))
        });
        NotWritten::or_error(claimed.await)
    }

    /// Ends a task that no turn is working on, if it still is as `due` wants it.
    pub(crate) async fn end(
        &self,
        live: &LiveTask,
        state: TaskState,
        text: Option<String>,
        reason: Reason,
        due: impl Fn(&Core) -> bool,
    ) -> Result<(), Error> {
        let ended = live.inbox::<(), NotWritten>(self, |core| {
            if core.is_done() || !due(core) {
                return Err(NotWritten::NotNeeded);
            }
            let at = core.next_status_at(self.clock.now());
            let mut row = core.row.clone();
            row.state = state;
            row.status_at = at;
            row.phase = Phase::Done;
            row.fence = row.fence.next();
            row.expires_at = None;
            let message = text.clone().map(|text| Message::text(Role::Agent, text));
            let metadata = with_usage(core, reason.metadata());
            let burst = Burst::of(vec![live.status_event(state, at, message, metadata)]);
            Ok((Writing { burst, row, class: Class::Inbox, sides: Sides::default(), refusable: false }, ()))
        });
        if NotWritten::or_error(ended.await)? {
            tracing::warn!(
                task = %live.task.id, agent = %live.task.agent, reason = reason.as_str(), "a task was ended by the server"
            );
            self.live.forget(&live.task.id);
        }
        Ok(())
    }
}

/// Whether a task has a turn that nobody runs or is about to. One that was recovered before and never got its place
/// is such a turn as well, unless it already waits here.
fn lost(core: &Core) -> bool {
    let begun = match core.row.phase {
        Phase::Running | Phase::Interrupted => true,
        Phase::Queued => core.row.recoveries > 0 && core.recovered.is_none(),
        Phase::Parked | Phase::Done => false,
    };
    begun && !core.driven && !core.waking
}

/// Why an append was not made.
pub(crate) enum NotWritten {
    /// The task has changed so that there is nothing to do.
    NotNeeded,
    Store(StoreError),
}

impl NotWritten {
    /// Whether it was written; only a fault of the store is an error.
    pub(crate) fn or_error<T>(result: Result<T, Self>) -> Result<bool, Error> {
        match result {
            Ok(_) => Ok(true),
            Err(Self::NotNeeded) => Ok(false),
            Err(Self::Store(error)) => Err(Error::from_store(&error)),
        }
    }
}

impl From<StoreError> for NotWritten {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn view(live: &LiveTask) -> Option<TaskView> {
    let core = live.core.lock();
    let current = core.fold.inner.current.as_ref()?;
    Some(TaskView {
        task: core.task(),
        message: current.received.message.clone(),
        saved: core.fold.inner.saved.clone(),
        caller: live.task.owner.clone(),
        hints: Hints::seen_by(&live.task.agent, &current.received),
    })
}

fn outcome_label(recovery: &Recovery) -> &'static str {
    match recovery {
        Recovery::Resume => "resumed",
        Recovery::Restart => "restarted",
        Recovery::Fail(_) => "failed",
    }
}
