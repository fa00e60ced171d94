//! What an agent says of its task, in the SDK's words.

use a2a::{
    Artifact, Message, Part, Role, StreamResponse, TaskArtifactUpdateEvent, TaskState, TaskStatus,
    TaskStatusUpdateEvent,
};

/// The task that an agent works on.
#[derive(Clone)]
pub(crate) struct Work {
    pub(crate) task_id: String,
    pub(crate) context_id: String,
}

impl Work {
    pub(crate) fn status(&self, state: TaskState) -> StreamResponse {
        self.status_with(state, None)
    }

    pub(crate) fn status_saying(&self, state: TaskState, text: &str) -> StreamResponse {
        let mut message = self.message(text);
        message.task_id = Some(self.task_id.clone());
        self.status_with(state, Some(message))
    }

    pub(crate) fn message(&self, text: &str) -> Message {
        let mut message = Message::new(Role::Agent, vec![Part::text(text)]);
        message.context_id = Some(self.context_id.clone());
        message
    }

    pub(crate) fn artifact(&self, id: &str, parts: Vec<Part>) -> StreamResponse {
        self.update(id, parts, None, None)
    }

    /// One of many pieces of an artifact, counted from 1.
    pub(crate) fn chunk(&self, number: u32, count: u32, padding: &str) -> StreamResponse {
        let parts = vec![Part::text(format!("chunk {number}{padding}\n"))];
        self.update("chunks", parts, Some(number > 1), Some(number == count))
    }

    fn status_with(&self, state: TaskState, message: Option<Message>) -> StreamResponse {
        StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: self.task_id.clone(),
            context_id: self.context_id.clone(),
            status: TaskStatus { state, message, timestamp: None },
            metadata: None,
        })
    }

    fn update(&self, id: &str, parts: Vec<Part>, append: Option<bool>, last_chunk: Option<bool>) -> StreamResponse {
        StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
            task_id: self.task_id.clone(),
            context_id: self.context_id.clone(),
            artifact: Artifact {
                artifact_id: id.to_owned(),
                name: None,
                description: None,
                parts,
                metadata: None,
                extensions: None,
            },
            append,
            last_chunk,
            metadata: None,
        })
    }
}
