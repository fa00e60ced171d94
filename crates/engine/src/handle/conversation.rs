//! What a turn can read of its conversation: earlier messages of its task and of other tasks, and their notes.

use switchboard_a2a::{Json, Message};

use crate::agent::{AgentError, Turn};
use crate::event::Event;
use crate::fold::NumberedMessage;
use crate::handle::{Stopped, TaskHandle};
use crate::ids::Seq;
use crate::routing_hints::RoutingHints;

/// The longest note, in bytes: it stands in the task's row.
const NOTE_BYTES: usize = 16 << 10;

impl TaskHandle {
    /// A turn on another message of this task, by its number. An answer to a question takes the place of the message
    /// that was being worked on; a turn that is recovered has to go on with that one. As it is, if the number is no
    /// message's.
    pub async fn turn_on(&self, seq: Seq, turn: Turn) -> Result<Turn, AgentError> {
        let found = self.engine.received(&self.live, seq).await;
        let found = found.map_err(|error| AgentError::new(format!("the message could not be read: {error}")))?;
        let Some(NumberedMessage { received, .. }) = found else { return Ok(turn) };
        Ok(Turn {
            message: received.message.clone(),
            seq,
            accepted_output_modes: received.accepted_output_modes.clone(),
            metadata: received.metadata.clone(),
            trace: received.trace.clone(),
            extensions: received.extensions.clone(),
            hints: RoutingHints::seen_by(&self.live.task.agent, &received),
            routing: received.routing.clone(),
            ..turn
        })
    }

    /// The newest messages of this conversation's earlier tasks, oldest first, at most `max`.
    pub async fn context_history(&self, max: usize) -> Vec<Message> {
        self.engine.context_history(&self.live.task, max).await
    }

    /// Notes something for the conversation: what is noted last is what later turns and tasks of it find, also after a
    /// restart. It goes with the task that noted it when that is deleted.
    pub async fn note(&self, value: &impl serde::Serialize) -> Result<(), Stopped> {
        let value = Json::from_serialize(value).map_err(|error| Stopped::TooLarge(error.to_string()))?;
        let bytes = value.as_str().len();
        if bytes > NOTE_BYTES {
            return Err(Stopped::TooLarge(format!("a note of {bytes} bytes is over the limit of {NOTE_BYTES}")));
        }
        self.wait_for_buffer(bytes).await?;
        self.push(&mut self.live.core.lock(), Event::Noted(value)).map(drop)
    }

    /// What was last noted in this conversation by one of this agent's tasks, this one included.
    pub async fn noted(&self) -> Result<Option<Json>, AgentError> {
        if let Some(own) = self.noted_before_commit() {
            return Ok(own);
        }
        let noted = self.engine.store.noted(self.live.task.conversation()).await;
        let noted = noted.map_err(|error| AgentError::new(format!("the conversation could not be read: {error}")))?;
        Ok(noted.and_then(|noted| Json::parse(&noted).ok()))
    }

    /// The note of a conversation that nobody else can know: it was begun with this task, which is not committed.
    fn noted_before_commit(&self) -> Option<Option<Json>> {
        let core = self.live.core.lock();
        if !self.live.begins_context || core.key.is_some() || core.output.in_flight.1 > 0 {
            return None;
        }
        let own = core.output.batch.events.iter().rev().find_map(|event| match event {
            Event::Noted(value) => Some(value.clone()),
            _ => None,
        });
        Some(own)
    }
}
