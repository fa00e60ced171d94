//! The time limits of a turn: the task's deadline, and how long it may pass without an event.

use switchboard_a2a::Timestamp;

use super::Driver;
use super::timers::Alarm;
use crate::clock::later;
use crate::engine::EngineState;
use crate::live_task::Core;
use crate::reason::Reason;

impl Driver {
    pub(super) fn arm_limits(&mut self) {
        if let Some((at, _)) = self.next_limit() {
            self.timers.set(Alarm::Limits, self.engine.clock.sleep_until(at));
            self.live.output.notify_one();
        }
    }

    fn next_limit(&self) -> Option<(Timestamp, Reason)> {
        let settings = &self.engine.settings;
        let core = self.live.core.lock();
        let deadline = self.engine.deadline_of(&core).map(|at| (at, Reason::TimedOut));
        // An agent that waits for an answer is not idle.
        let idle = settings.idle.filter(|_| !core.row.state.is_interrupted());
        let idle = idle.map(|limit| (later(core.last_event_at(), limit), Reason::Idle));
        match (deadline, idle) {
            (Some(deadline), Some(idle)) => Some(if deadline.0 <= idle.0 { deadline } else { idle }),
            (deadline, idle) => deadline.or(idle),
        }
    }

    pub(super) fn check_limits(&mut self) {
        match self.next_limit() {
            Some((at, reason)) if at <= self.engine.clock.now() => {
                let mut core = self.live.core.lock();
                if core.turn.is_run(self.run_number) {
                    core.output.stop.get_or_insert(reason);
                }
                drop(core);
                self.live.wake();
            }
            _ => self.arm_limits(),
        }
    }
}

impl Core {
    /// When the task last got an event, as near as its status tells.
    fn last_event_at(&self) -> Timestamp {
        self.output.status_at.max(self.last_append_at)
    }
}

impl EngineState {
    /// When a task's total time is over: its own deadline or `tasks.deadline`, whichever is first.
    pub(crate) fn deadline_of(&self, core: &Core) -> Option<Timestamp> {
        // A task that is not committed yet was received when its row says.
        let begun = core.fold.kernel.first_at.unwrap_or(core.row.status_at);
        self.deadline_from(begun, core.fold.kernel.deadline)
    }

    /// The same for a task that was received at a time and has a deadline of its own.
    pub(crate) fn deadline_from(&self, begun: Timestamp, own: Option<Timestamp>) -> Option<Timestamp> {
        let limit = self.settings.deadline.map(|limit| later(begun, limit));
        limit.into_iter().chain(own).min()
    }
}
