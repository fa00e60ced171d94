//! A task followed through the frames of a peer's stream: what it is after each of them.

use crate::{Artifact, ContextId, StreamResponse, Task, TaskArtifactUpdate, TaskId, TaskStatusUpdate};

impl Task {
    /// Takes a frame in; says whether it told anything about this task. A whole task replaces what was known, an update
    /// changes it, and a direct reply or another task's frame changes nothing. An update without a task id, which some
    /// peers leave out, is about this one. Nothing follows a terminal state but artifacts that were on their way.
    pub fn apply(&mut self, frame: &StreamResponse) -> bool {
        match frame {
            StreamResponse::Task(task) if task.id == self.id => {
                *self = task.clone();
                true
            }
            StreamResponse::StatusUpdate(update) => {
                let is_told = !self.status.state.is_terminal() && self.is_meant(&update.task_id, &update.context_id);
                if is_told {
                    self.change_status(update);
                }
                is_told
            }
            StreamResponse::ArtifactUpdate(update) => {
                let is_told = self.is_meant(&update.task_id, &update.context_id);
                if is_told {
                    self.change_artifacts(update);
                }
                is_told
            }
            StreamResponse::Task(_) | StreamResponse::Message(_) => false,
        }
    }

    /// Whether an update is about this task; if so, its conversation is ours where the peer had not said it before.
    fn is_meant(&mut self, task: &TaskId, context: &ContextId) -> bool {
        let is_meant = task.as_str().is_empty() || *task == self.id;
        if is_meant && self.context_id.as_str().is_empty() {
            self.context_id = context.clone();
        }
        is_meant
    }

    /// What the agent said with the former status is history now, unless the peer has put it there already.
    fn change_status(&mut self, update: &TaskStatusUpdate) {
        let said = std::mem::replace(&mut self.status, update.status.clone()).message;
        let is_there = |said: &crate::Message| {
            self.history.last().is_some_and(|last| {
                last == said || (!said.message_id.as_str().is_empty() && last.message_id == said.message_id)
            })
        };
        if let Some(said) = said.filter(|said| !is_there(said)) {
            self.history.push(said);
        }
        if let Some(metadata) = &update.metadata {
            self.metadata.get_or_insert_default().merge(metadata);
        }
    }

    /// A new artifact, a replacement, or a further chunk. A chunk of an artifact nobody has seen begins it.
    fn change_artifacts(&mut self, update: &TaskArtifactUpdate) {
        let chunk = &update.artifact;
        match self.artifacts.iter_mut().find(|known| known.artifact_id == chunk.artifact_id) {
            None => self.artifacts.push(chunk.clone()),
            Some(known) if update.append => known.extend(chunk),
            Some(known) => known.clone_from(chunk),
        }
    }
}

impl Artifact {
    /// Puts a further chunk behind what is there. Chunks of plain text become one text; name, description and equal keys
    /// of the metadata are those of the chunk.
    pub fn extend(&mut self, chunk: &Artifact) {
        for part in &chunk.parts {
            match self.parts.last_mut() {
                Some(last) if last.is_bare_text() && part.is_bare_text() => last.push_text(part),
                _ => self.parts.push(part.clone()),
            }
        }
        if chunk.name.is_some() {
            self.name.clone_from(&chunk.name);
        }
        if chunk.description.is_some() {
            self.description.clone_from(&chunk.description);
        }
        if let Some(metadata) = &chunk.metadata {
            self.metadata.get_or_insert_default().merge(metadata);
        }
        for extension in &chunk.extensions {
            if !self.extensions.contains(extension) {
                self.extensions.push(extension.clone());
            }
        }
    }
}
