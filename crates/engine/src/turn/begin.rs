//! What a turn begins with.

use std::sync::Arc;

use switchboard_a2a::Json;

use crate::agent::{Cause, Turn};
use crate::event::Received;
use crate::hints::Hints;
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

    /// The turn a task is due: its current message, which is its first, the answer to its last question, or one that
    /// came while an earlier turn ran.
    pub(crate) fn current(core: &Core) -> Option<Self> {
        let inner = &core.fold.inner;
        let current = inner.current.as_ref()?;
        let cause = match &inner.question {
            _ if current.seq == inner.first => Cause::Begin,
            Some(question) => Cause::Answer { question: Some(question.clone()) },
            None => Cause::Next,
        };
        Some(Self::new(current.received.clone(), cause, inner.saved.clone()))
    }

    /// A turn that lost its process goes on with its message, or starts over with the task's first.
    pub(crate) fn recovered(core: &Core, from_the_start: bool) -> Option<Self> {
        let inner = &core.fold.inner;
        let current = inner.current.as_ref()?;
        let mut received = current.received.clone();
        if from_the_start && let Some(first) = core.fold.task.history.first() {
            received = Arc::new(Received { message: first.clone(), ..Received::clone(&received) });
        }
        Some(Self::new(received, Cause::Recovered, inner.saved.clone()))
    }

    pub(super) fn turn(self, live: &LiveTask) -> Turn {
        Turn {
            message: self.received.message.clone(),
            cause: self.cause,
            saved: self.saved,
            caller: live.task.owner.clone(),
            accepted_output_modes: self.received.accepted_output_modes.clone(),
            metadata: self.received.metadata.clone(),
            hints: Hints::seen_by(&live.task.agent, &self.received),
        }
    }
}
