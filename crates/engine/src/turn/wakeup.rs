//! What an inbox append that ends a task's wait does to its turn: the turn is claimed and goes on, or waits for a permit.
//!
//! One wake-up belongs to one append, which may be decided several times: the permit is asked for once, and a claim that
//! was not made is undone before the next decision.

use std::sync::Arc;

use switchboard_a2a::TaskState;

use crate::admission::Admitted;
use crate::append::{AppendKind, PendingAppend};
use crate::directory::Hosted;
use crate::engine::{EngineState, shutting_down};
use crate::error::Error;
use crate::event::Event;
use crate::live_task::{Core, LiveTask};
use crate::queue::QueuePriority;
use crate::store::Phase;

/// How the turn goes on once the append is committed.
#[derive(Default)]
pub(crate) struct Wakeup {
    admitted: Option<Admitted>,
    wakes: bool,
    claims: bool,
}

impl Wakeup {
    /// The append of `events` and of the WORKING status that follows them.
    pub(crate) fn append(
        &mut self,
        engine: &Arc<EngineState>,
        live: &LiveTask,
        hosted: &Arc<Hosted>,
        core: &mut Core,
        mut events: Vec<Event>,
    ) -> Result<PendingAppend, Error> {
        let at = core.next_status_at(engine.clock.now());
        events.push(live.status_event(TaskState::Working, at, None, None));
        let mut row = core.row.clone();
        (row.state, row.status_at, row.expires_at) = (TaskState::Working, at, None);
        let mut kind = AppendKind::Inbox;
        // An agent that is never parked waits in its running turn, which sees the commit.
        self.wakes = core.row.phase == Phase::Parked;
        if self.wakes {
            if engine.interrupting.is_cancelled() {
                return Err(shutting_down());
            }
            if self.admitted.is_none() {
                self.admitted = Some(engine.admit(hosted, &live.task)?);
            }
            let is_queued = matches!(self.admitted, Some(Admitted::Queued(_)));
            row.phase = if is_queued { Phase::Queued } else { Phase::Running };
            row.expires_at = engine.deadline_of(core).filter(|_| is_queued);
            row.fence = row.fence.next();
            if !is_queued {
                core.turn.begin_claim().map_err(Error::retry_soon)?;
                self.claims = true;
                kind = AppendKind::Claim;
            }
        }
        Ok(PendingAppend { kind, ..PendingAppend::inbox(events, row) })
    }

    /// The append is decided again, or was not made.
    pub(crate) fn undo(&mut self, core: &mut Core) {
        self.wakes = false;
        if std::mem::take(&mut self.claims) {
            core.turn.undo_claim();
        }
    }

    /// The append is committed: the turn goes on, or waits in the queue.
    pub(crate) fn committed(self, engine: &Arc<EngineState>, live: Arc<LiveTask>) {
        match self.admitted.filter(|_| self.wakes) {
            Some(Admitted::Runs(permit)) => drop(engine.wake_turn(live, permit)),
            Some(Admitted::Queued(slot)) => engine.enqueue(QueuePriority::of_new(&live.task), live, slot),
            None => {}
        }
    }
}
