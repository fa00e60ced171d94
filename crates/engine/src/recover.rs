//! Recovery: tasks that an earlier process was running or had queued are resumed, requeued or failed.

mod order;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;

use switchboard_a2a::{Message, Role, TaskState};

use crate::agent::{Recovery, TaskView};
use crate::append::PendingAppend;
use crate::directory::Hosted;
use crate::engine::EngineState;
use crate::error::Error;
use crate::event::Event;
use crate::ids::Seq;
use crate::live_task::{Core, LiveTask, TurnLocation};
use crate::metric_definitions as metric;
use crate::reason::Reason;
use crate::review::Verdict;
use crate::routing_hints::RoutingHints;
use crate::store::{Phase, RowState, StoreError, TaskRow};
use crate::turn::{self, TurnInput};

/// How many rows are looked at in one read.
const PAGE: usize = 256;
/// How long a fault of the store is waited out.
const PAUSE: Duration = Duration::from_secs(1);
/// How long an agent may take to say how to go on.
const PATIENCE: Duration = Duration::from_secs(60);

/// A turn that recovery has claimed, if it has. Held until it goes on or ends: a shutdown marks only what is in memory, and a
/// claimed turn without a mark would look to the next process as if this one had crashed.
type Claim = Option<Arc<LiveTask>>;

/// A turn that lost its process, and how it goes on.
pub(crate) struct RecoveredTurn {
    row: TaskRow,
    live: Arc<LiveTask>,
    begin: Option<TurnInput>,
    /// It had not begun to work, and waits for its turn like those that have not begun at all.
    waits: bool,
}

impl EngineState {
    /// Waits a little; false if the server stops meanwhile.
    async fn pause(&self) -> bool {
        tokio::select! {
            () = self.clock.sleep(PAUSE) => true,
            () = self.closing.cancelled() => false,
        }
    }

    /// Ends a task whose agent is gone. Where nodes share the store, another one may serve it.
    async fn fail_unserved(&self, live: &LiveTask, due: impl Fn(&Core) -> bool) -> Result<(), Error> {
        if self.is_shared {
            return Ok(());
        }
        let text = format!("agent {} is no longer served here", live.task.agent);
        self.end(live, TaskState::Failed, Some(text), Reason::Interrupted, due).await
    }

    /// Lets the agent decide about a turn that lost its process. The turn is claimed once, however often the store fails
    /// meanwhile: only an agent without progress uses up its recoveries.
    async fn decide(self: &Arc<Self>, row: &TaskRow, claimed: &mut Claim) -> Result<Option<RecoveredTurn>, Error> {
        let Some(live) = self.find_task(&row.task.id).await? else { return Ok(None) };
        self.link_children(&live).await?;
        let Some(hosted) = live.hosted.clone() else {
            return self.fail_unserved(&live, has_lost_turn).await.map(|()| None);
        };
        let (canceled, recoveries) = {
            let core = live.core.lock();
            (core.fold.kernel.cancel_requested, core.row.recoveries)
        };
        if canceled || self.is_orphaned(&live.task).await? {
            // The process may have died before it had reached them. First, because an ended task is not recovered.
            self.cancel_children(&live).await?;
            return self.end_lost(&live, TaskState::Canceled, None, Reason::CanceledByCaller).await;
        }
        // Only a turn that goes down with its process may be what takes it down. One that a graceful shutdown interrupted,
        // or that waited for a slot, uses up nothing.
        let was_lost = row.state.phase == Phase::Running;
        if claimed.is_none() && was_lost && recoveries >= self.settings.max_recoveries {
            let text = format!("given up after {recoveries} recoveries without progress");
            return self.end_lost(&live, TaskState::Failed, Some(text), Reason::RecoveryLimit).await;
        }
        if self.closing.is_cancelled() || !(claimed.is_some() || self.claim(&live).await?) {
            return Ok(None);
        }
        *claimed = Some(live.clone());
        let Some(view) = self.view(&live).await? else {
            let text = "its first message is missing".to_owned();
            return self.end_lost(&live, TaskState::Failed, Some(text), Reason::Interrupted).await;
        };
        let decided = self.ask_agent(&hosted, &view).await;
        let outcome = outcome_label(&decided);
        tracing::info!(
            task = %live.task.id, agent = %live.task.agent, outcome, "a task that had lost its process was taken up"
        );
        metrics::counter!(metric::RECOVERIES, "outcome" => outcome).increment(1);
        let waits = decided == Recovery::Queue;
        let message = match decided {
            Recovery::Fail(text) => {
                return self.end_lost(&live, TaskState::Failed, Some(text), Reason::Interrupted).await;
            }
            Recovery::Resume | Recovery::Queue => live.core.lock().fold.kernel.current.clone(),
            Recovery::Restart => {
                let first = Seq(live.core.lock().fold.kernel.first);
                self.received(&live, first).await?
            }
        };
        let begin = message.map(|message| TurnInput::recovered(&live.core.lock(), message, !was_lost));
        Ok(Some(RecoveredTurn { row: row.clone(), live, begin, waits }))
    }

    /// The task for its agent; nothing if it has no message.
    async fn view(&self, live: &Arc<LiveTask>) -> Result<Option<TaskView>, Error> {
        let (view, approved) = {
            let core = live.core.lock();
            let kernel = &core.fold.kernel;
            let Some(current) = &kernel.current else { return Ok(None) };
            let view = TaskView {
                task: core.task(),
                message: current.received.message.clone(),
                seq: Seq(current.seq),
                began: turn::began(kernel),
                saved: kernel.saved.clone(),
                caller: live.task.owner.clone(),
                hints: RoutingHints::seen_by(&live.task.agent, &current.received),
                answered: kernel.answered_review.clone(),
            };
            let decision = current.received.decision.as_ref();
            (view, decision.filter(|decision| decision.verdict == Verdict::Approve).and_then(|decision| decision.turn))
        };
        let Some(approved) = approved else { return Ok(Some(view)) };
        let message = self.received(live, approved).await?;
        let message = message.map_or(view.message, |approved| approved.received.message.clone());
        Ok(Some(TaskView { message, ..view }))
    }

    async fn end_lost(
        &self,
        live: &LiveTask,
        state: TaskState,
        text: Option<String>,
        reason: Reason,
    ) -> Result<Option<RecoveredTurn>, Error> {
        self.end(live, state, text, reason, has_lost_turn).await.map(|()| None)
    }

    /// Stores that a recovered turn waits in the queue; false if that is not needed any more.
    async fn mark_requeued(&self, live: &LiveTask) -> Result<bool, StoreError> {
        let decide = |core: &mut Core| {
            let row = RowState {
                phase: Phase::Requeued,
                fence: core.row.fence.next(),
                expires_at: self.deadline_of(core),
                ..core.row.clone()
            };
            has_lost_turn(core).then(|| PendingAppend::inbox(Vec::new(), row))
        };
        live.inbox_if(self, decide).await
    }

    /// The agent's decision; one that panics or hangs fails its task.
    async fn ask_agent(&self, hosted: &Hosted, view: &TaskView) -> Recovery {
        let served = hosted.served();
        let asked = AssertUnwindSafe(async { served.agent.recover_boxed(view).await }).catch_unwind();
        let answer = tokio::select! {
            answer = asked => answer,
            () = self.clock.sleep(PATIENCE) => Ok(Recovery::Fail("the agent did not say how to go on".to_owned())),
        };
        answer.unwrap_or_else(|panic| {
            let text = turn::panic_text(panic.as_ref());
            Recovery::Fail(format!("the agent panicked when asked how to go on: {text}"))
        })
    }

    /// Claims a turn that no driver runs, and counts the recovery if it lost its process; false if it has ended meanwhile.
    async fn claim(&self, live: &LiveTask) -> Result<bool, StoreError> {
        let decide = |core: &mut Core| {
            let mut row = RowState { phase: Phase::Running, expires_at: None, ..core.row.clone() };
            row.fence = row.fence.next();
            row.recoveries += u32::from(core.row.phase == Phase::Running);
            let may_claim = has_lost_turn(core) && !self.interrupting.is_cancelled();
            may_claim.then(|| PendingAppend::claim(vec![Event::Recovered], row))
        };
        live.inbox_if(self, decide).await
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
        let decide = |core: &mut Core| {
            if core.is_done() || !due(core) {
                return None;
            }
            let message = text.clone().map(|text| Message::text(Role::Agent, text));
            let (status, row) = self.terminal_event(live, core, state, message, reason);
            Some(PendingAppend::inbox(vec![status], row))
        };
        if live.inbox_if(self, decide).await? {
            tracing::warn!(
                task = %live.task.id, agent = %live.task.agent, reason = reason.as_str(), "a task was ended by the server"
            );
            self.live.forget(&live.task.id);
        }
        Ok(())
    }
}

/// Whether a task has a turn without a driver. A turn that was recovered before and never got its permit is one as
/// well, unless it already waits here.
fn has_lost_turn(core: &Core) -> bool {
    let begun = match core.row.phase {
        Phase::Running | Phase::Interrupted => true,
        Phase::Requeued => !core.turn.is_requeued(),
        Phase::Queued | Phase::Parked | Phase::Done => false,
    };
    // A turn that waits in the queue may be held in memory by a parked agent.
    begun && core.location() == TurnLocation::Nowhere && (core.turn.is_idle() || core.turn.is_requeued())
}

fn outcome_label(recovery: &Recovery) -> &'static str {
    match recovery {
        Recovery::Resume => "resumed",
        Recovery::Restart => "restarted",
        Recovery::Queue => "queued",
        Recovery::Fail(_) => "failed",
    }
}
