//! A turn that a driver of this process holds: what it writes under, whether it has its permit, how far its run has got.
//!
//! The permit goes its own way, which the agent, the driver and the queue share:
//!
//! | from | to | transition | made by |
//! |---|---|---|---|
//! | Held | Releasing | `release_permit` | the agent waits for other turns |
//! | Releasing | Released | `confirm_release` | the driver, which drops the permit |
//! | Releasing | Held | `needs_permit` | the agent goes on before the driver has looked |
//! | Granted, Requeued | Released | `release_permit` | the agent waits again before it has got its permit |
//! | Released | Requeued | `wait_for_permit` | the agent goes on and finds no permit |
//! | Released, Requeued | Granted | `grant` | the agent; the queue |
//! | any | Granted | `TurnState::claimed` | an answer to the agent that waits in memory |
//! | Granted | Held | `take_permit` | the driver |

use crate::admission::Permit;
use crate::handle::SaveAtShutdown;
use crate::ids::Fence;
use crate::store::StoreError;

/// A turn that a driver of this process holds.
pub(crate) struct DrivenTurn {
    /// The fence that it writes under.
    pub(crate) fence: Fence,
    /// A claim of its next turn is under way; if the driver leaves meanwhile, that turn begins without it.
    pub(super) is_being_claimed: bool,
    pub(super) permit: PermitState,
    pub(crate) progress: RunProgress,
    /// The run knows that it has to stop, and cannot complete its task any more.
    pub(crate) stop_observed: bool,
    /// Why the last append of output failed. It is retried; blocked senders do not wait for that.
    pub(crate) unstored: Option<StoreError>,
    /// What a graceful shutdown saves for the run.
    pub(crate) at_shutdown: Option<SaveAtShutdown>,
}

/// How far a run of the agent has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RunProgress {
    #[default]
    Working,
    /// It has asked a question and not been given the answer.
    Asking,
    /// It has been told that its question is settled, and has told no status since.
    Settled,
    /// `complete` was called while messages were unread: the turn is over, the task is not.
    Over,
}

impl RunProgress {
    /// Whether it has asked and may return, because what comes of the question is a new run's.
    pub(crate) fn has_asked(self) -> bool {
        matches!(self, Self::Asking | Self::Settled)
    }
}

/// Whether a driven turn has its permit to run.
#[derive(Default)]
pub(crate) enum PermitState {
    /// The driver has it, or sees to that.
    #[default]
    Held,
    /// The agent wants to release it; the driver has not looked yet.
    Releasing,
    /// It has none and wants none.
    Released,
    /// It waits in the queue for another one.
    Requeued,
    /// Another one is here; the driver has not taken it yet.
    Granted(Permit),
}

impl DrivenTurn {
    /// A turn that has its permit and has not begun to run.
    pub(super) fn new(fence: Fence) -> Self {
        Self {
            fence,
            is_being_claimed: false,
            permit: PermitState::Held,
            progress: RunProgress::Working,
            stop_observed: false,
            unstored: None,
            at_shutdown: None,
        }
    }

    /// The next run begins; a permit that the driver has not taken stays.
    pub(super) fn begin_run(&mut self) {
        self.progress = RunProgress::Working;
        self.stop_observed = false;
        self.at_shutdown = None;
        if !self.has_granted_permit() {
            self.permit = PermitState::Held;
        }
    }

    /// The agent waits for other turns and needs no permit meanwhile. Gives back one that the driver has not taken.
    pub(crate) fn release_permit(&mut self) -> Option<Permit> {
        let (next, unused) = match std::mem::take(&mut self.permit) {
            PermitState::Held | PermitState::Releasing => (PermitState::Releasing, None),
            PermitState::Released | PermitState::Requeued => (PermitState::Released, None),
            PermitState::Granted(permit) => (PermitState::Released, Some(permit)),
        };
        self.permit = next;
        unused
    }

    /// The driver drops its permit if the agent has released it.
    pub(crate) fn confirm_release(&mut self) -> bool {
        let is_releasing = matches!(self.permit, PermitState::Releasing);
        if is_releasing {
            self.permit = PermitState::Released;
        }
        is_releasing
    }

    /// The agent goes on; whether it needs another permit for that. One that the driver has not dropped yet is kept.
    pub(crate) fn needs_permit(&mut self) -> bool {
        if matches!(self.permit, PermitState::Releasing) {
            self.permit = PermitState::Held;
        }
        matches!(self.permit, PermitState::Released)
    }

    /// It waits in the queue for a permit.
    pub(crate) fn wait_for_permit(&mut self) {
        if matches!(self.permit, PermitState::Released) {
            self.permit = PermitState::Requeued;
        }
    }

    /// Gives a permit to a turn that has none; back if it has one or wants none.
    pub(crate) fn grant(&mut self, permit: Permit) -> Result<(), Permit> {
        if !self.is_without_permit() {
            return Err(permit);
        }
        self.permit = PermitState::Granted(permit);
        Ok(())
    }

    /// The permit that was granted, for the driver.
    pub(crate) fn take_permit(&mut self) -> Option<Permit> {
        match std::mem::take(&mut self.permit) {
            PermitState::Granted(permit) => Some(permit),
            other => {
                self.permit = other;
                None
            }
        }
    }

    pub(crate) fn has_granted_permit(&self) -> bool {
        matches!(self.permit, PermitState::Granted(_))
    }

    /// Whether it has released its permit and not got another.
    pub(crate) fn is_without_permit(&self) -> bool {
        matches!(self.permit, PermitState::Released | PermitState::Requeued)
    }
}
