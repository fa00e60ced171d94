//! The fold: frames of a stream applied to a task, one after the other.

use crate::{Artifact, ContextId, StreamResponse, Task, TaskArtifactUpdate, TaskId, TaskStatusUpdate};

impl Task {
    /// Applies a frame; false if it is not about this task. A whole task replaces this one, an update changes it, and a
    /// direct reply or another task's frame changes nothing. An update without a task id, which some peers leave out, is
    /// about this one. After a terminal event only artifacts that were already in flight are applied.
    pub fn apply(&mut self, frame: &StreamResponse) -> bool {
        match frame {
            StreamResponse::Task(task) if task.id == self.id => {
                *self = task.clone();
                true
            }
            StreamResponse::StatusUpdate(update) => {
                let applies =
                    !self.status.state.is_terminal() && self.is_about_this_task(&update.task_id, &update.context_id);
                if applies {
                    self.change_status(update);
                }
                applies
            }
            StreamResponse::ArtifactUpdate(update) => {
                let applies = self.is_about_this_task(&update.task_id, &update.context_id);
                if applies {
                    self.change_artifacts(update);
                }
                applies
            }
            StreamResponse::Task(_) | StreamResponse::Message(_) => false,
        }
    }

    /// Whether an update is about this task; if so, its conversation is ours where the peer had not named it before.
    fn is_about_this_task(&mut self, task: &TaskId, context: &ContextId) -> bool {
        let is_about_this_task = task.as_str().is_empty() || *task == self.id;
        if is_about_this_task && self.context_id.as_str().is_empty() {
            self.context_id = context.clone();
        }
        is_about_this_task
    }

    /// The message of the former status is history now, unless the peer has put it there already.
    fn change_status(&mut self, update: &TaskStatusUpdate) {
        let previous = std::mem::replace(&mut self.status, update.status.clone()).message;
        let is_in_history = |previous: &crate::Message| {
            self.history.last().is_some_and(|last| {
                last == previous || (!previous.message_id.as_str().is_empty() && last.message_id == previous.message_id)
            })
        };
        if let Some(previous) = previous.filter(|previous| !is_in_history(previous)) {
            self.history.push(previous);
        }
        if let Some(metadata) = &update.metadata {
            self.metadata.get_or_insert_default().merge(metadata);
        }
    }

    /// A new artifact, a replacement, or a further chunk. A chunk of an unknown artifact begins it.
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
