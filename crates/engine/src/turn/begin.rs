//! What a turn begins with.

use std::sync::Arc;

use switchboard_a2a::Json;

use crate::agent::{Cause, Turn};
use crate::event::Received;
use crate::live::{Core, LiveTask};

/// A message to work on, and why now.
pub(crate) struct Begin {
    received: Arc<Received>,
    cause: Cause,
    saved: Option<Json>,
}

impl Begin {
    pub(crate) fn new(received: Arc<Received>, cause: Cause, saved: Option<Json>) -> Self {
        Self { received, cause, saved }
    }

    /// The turn a task is due: its current message, which is its first or the answer to its last question.
    pub(crate) fn current(core: &Core) -> Option<Self> {
        let inner = &core.fold.inner;
        let current = inner.current.as_ref()?;
        let cause =
            if current.seq == inner.first { Cause::Begin } else { Cause::Answer { question: inner.question.clone() } };
        Some(Self::new(current.received.clone(), cause, inner.saved.clone()))
    }

    pub(super) fn turn(self, live: &LiveTask) -> Turn {
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
