//! The emitted messages, for deduplication. Snapshots of a task need not hold earlier messages, so these are kept
//! apart.

use std::collections::HashSet;

use switchboard_a2a::{Message, StreamResponse, Task};

#[derive(Debug, Default)]
pub(super) struct SeenMessages(HashSet<String>);

impl SeenMessages {
    pub(super) fn of(task: &Task) -> Self {
        let mut messages = Self::default();
        messages.add_all(task);
        messages
    }

    pub(super) fn add(&mut self, event: &StreamResponse) {
        match event {
            StreamResponse::Task(task) => self.add_all(task),
            StreamResponse::StatusUpdate(update) => self.0.extend(update.status.message.as_ref().map(name)),
            StreamResponse::Message(message) => drop(self.0.insert(name(message))),
            StreamResponse::ArtifactUpdate(_) => {}
        }
    }

    pub(super) fn add_all(&mut self, task: &Task) {
        self.0.extend(task.history.iter().chain(&task.status.message).map(name));
    }

    pub(super) fn contains(&self, message: &Message) -> bool {
        self.0.contains(&name(message))
    }
}

/// The key of a message: its text where it has no id.
fn name(message: &Message) -> String {
    match message.message_id.as_str() {
        "" => format!("\0{}", message.joined_text()),
        id => id.to_owned(),
    }
}
