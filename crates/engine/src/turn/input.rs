//! What a turn begins with.

use std::sync::Arc;

use switchboard_a2a::Json;
use tokio::sync::oneshot;

use crate::agent::{Cause, Turn};
use crate::directory::Served;
use crate::event::Received;
use crate::fold::{KernelState, NumberedMessage};
use crate::ids::Seq;
use crate::live_task::{Core, LiveTask};
use crate::result_check::is_repair;
use crate::routing_hints::RoutingHints;

/// A message to work on, and why now.
pub(crate) struct TurnInput {
    received: Arc<Received>,
    seq: Seq,
    cause: Cause,
    saved: Option<Json>,
    was_stopped: bool,
    /// The agent that the message was routed to, as it was served then; else as it is served when the turn begins.
    pub(super) served: Option<Arc<Served>>,
    /// Gone once the agent has got to where it waits for the first time.
    pub(super) begun: Option<oneshot::Sender<()>>,
}

impl TurnInput {
    pub(crate) fn new(message: NumberedMessage, cause: Cause, saved: Option<Json>) -> Self {
        let (received, seq) = (message.received, Seq(message.seq));
        Self { received, seq, cause, saved, was_stopped: false, served: None, begun: None }
    }

    /// The turn a task is due: its current message, which is its first, the answer to its last question, one that came
    /// while an earlier turn ran, or the one whose question was settled elsewhere.
    pub(crate) fn current(core: &Core) -> Option<Self> {
        let inner = &core.fold.kernel;
        let current = inner.current.as_ref()?;
        let question = inner.question.clone();
        let cause = if core.fold.is_settled() {
            Cause::Settled { question }
        } else if current.seq == inner.first {
            Cause::Begin
        } else if question.is_some() || inner.answered != 0 {
            // Earlier versions have not stored what is answered.
            Cause::Answer { question }
        } else {
            Cause::Next
        };
        Some(Self::new(current.clone(), cause, inner.saved.clone()))
    }

    /// A turn that lost its process goes on with this message.
    pub(crate) fn recovered(core: &Core, message: NumberedMessage, was_stopped: bool) -> Self {
        Self { was_stopped, ..Self::new(message, Cause::Recovered, core.fold.kernel.saved.clone()) }
    }

    /// The same by this agent, even if another one is served in its place by now.
    pub(crate) fn served_by(self, served: Arc<Served>) -> Self {
        Self { served: Some(served), ..self }
    }

    /// The same, telling when it has begun.
    pub(crate) fn notifying(self, begun: oneshot::Sender<()>) -> Self {
        Self { begun: Some(begun), ..self }
    }

    pub(super) fn turn(self, live: &LiveTask) -> Turn {
        let (approved, decision, answered, began) = {
            let kernel = &live.core.lock().fold.kernel;
            (kernel.approved.clone(), kernel.decision.clone(), kernel.answered_review.clone(), began(kernel))
        };
        // The message of a turn that begins need not be committed as such.
        let begins = matches!(self.cause, Cause::Begin | Cause::Next) && !is_repair(&self.received.message);
        let began = if begins { self.seq } else { began };
        Turn {
            message: self.received.message.clone(),
            seq: self.seq,
            began,
            cause: self.cause,
            saved: self.saved,
            was_stopped: self.was_stopped,
            caller: live.task.owner.clone(),
            by: self.received.by.clone(),
            verdict: self.received.decision.as_ref().map(|decision| decision.verdict),
            accepted_output_modes: self.received.accepted_output_modes.clone(),
            metadata: self.received.metadata.clone(),
            trace: self.received.trace.clone(),
            extensions: self.received.extensions.clone(),
            hints: RoutingHints::seen_by(&live.task.agent, &self.received),
            routing: self.received.routing.clone(),
            decision,
            answered: answered.filter(|_| !begins),
            approved,
        }
    }
}

/// The number of the message that the current turn began with. Earlier versions have not stored it.
pub(crate) fn began(kernel: &KernelState) -> Seq {
    match kernel.turn {
        0 if kernel.answered != 0 => Seq(kernel.first),
        0 => Seq(kernel.current.as_ref().map_or(0, |current| current.seq)),
        turn => Seq(turn),
    }
}
