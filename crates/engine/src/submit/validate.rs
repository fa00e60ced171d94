//! What a message must meet before it is taken in, and whether there is room for its turn.

use std::sync::Arc;

use switchboard_a2a::{ContextId, Message};

use crate::caller::Caller;
use crate::directory::{Address, Hosted};
use crate::engine::{EngineState, state_label};
use crate::error::Error;
use crate::live_task::{Core, LiveTask};

/// The longest context id a caller may make up, in bytes: it becomes part of an index.
const CONTEXT_ID_BYTES: usize = 256;
/// The most other tasks a message may refer to: each is looked up.
const REFERENCES: usize = 100;

impl EngineState {
    pub(crate) fn check_size(&self, bytes: usize) -> Result<(), Error> {
        let limit = self.settings.event_bytes;
        if bytes <= limit {
            return Ok(());
        }
        let problem = format!("{bytes} bytes are over the limit of {limit} for one event (limits.event)");
        Err(Error::Invalid { field: "message", problem })
    }

    /// Messages count like everything else in a task's log.
    pub(crate) fn check_task_size(&self, core: &Core, bytes: usize) -> Result<(), Error> {
        let limit = self.settings.task_bytes;
        if core.bytes + bytes as u64 <= limit {
            return Ok(());
        }
        let problem = format!("the task would be over its limit of {limit} bytes (limits.task): begin a new one");
        Err(Error::Invalid { field: "message", problem })
    }

    /// Other tasks a message speaks of must be the caller's own.
    pub(crate) async fn check_references(&self, caller: &Caller, message: &Message) -> Result<(), Error> {
        let mut references: Vec<_> = message.reference_task_ids.iter().collect();
        references.sort();
        references.dedup();
        if references.len() > REFERENCES {
            let count = references.len();
            let problem = format!("{count} tasks are more than the {REFERENCES} that one message may refer to");
            return Err(Error::Invalid { field: "message.referenceTaskIds", problem });
        }
        for reference in references {
            self.visible_row(&Address::Root, caller, reference).await?;
        }
        Ok(())
    }
}

/// A caller may name its own context, but not without measure: it becomes part of an index.
pub(super) fn check_context(context: Option<&ContextId>) -> Result<(), Error> {
    let Some(context) = context else { return Ok(()) };
    if context.as_str().len() <= CONTEXT_ID_BYTES && !context.as_str().chars().any(char::is_control) {
        return Ok(());
    }
    let problem = format!("at most {CONTEXT_ID_BYTES} bytes and no control characters");
    Err(Error::Invalid { field: "message.contextId", problem })
}

/// The agent that gets a task's messages, if the task takes any at all.
pub(crate) fn takes_messages<'a>(live: &'a LiveTask, core: &Core) -> Result<&'a Arc<Hosted>, Error> {
    let id = &live.task.id;
    if core.is_done() {
        let state = state_label(core.row.state);
        return Err(Error::Unsupported(format!("task {id} is {state} and takes no more messages")));
    }
    if core.fold.kernel.cancel_requested {
        return Err(Error::Unsupported(format!("task {id} is being canceled and takes no more messages")));
    }
    let gone = || Error::Unsupported(format!("agent {} is no longer served here", live.task.agent));
    live.hosted.as_ref().ok_or_else(gone)
}
