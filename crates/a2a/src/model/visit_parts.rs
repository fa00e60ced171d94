//! One walk over all parts of a message, a task or a response, for transformations that change all of them.

use crate::{ListResponse, Message, Part, SendResponse, StreamResponse, Task};

/// Visits the parts of a value.
pub trait VisitParts {
    /// Visits every part, in the order in which they are written.
    fn for_each_part(&mut self, visit: &mut dyn FnMut(&mut Part));
}

impl VisitParts for Message {
    fn for_each_part(&mut self, visit: &mut dyn FnMut(&mut Part)) {
        self.parts.iter_mut().for_each(visit);
    }
}

impl VisitParts for Task {
    fn for_each_part(&mut self, visit: &mut dyn FnMut(&mut Part)) {
        if let Some(message) = &mut self.status.message {
            message.for_each_part(visit);
        }
        for artifact in &mut self.artifacts {
            artifact.parts.iter_mut().for_each(&mut *visit);
        }
        for message in &mut self.history {
            message.for_each_part(visit);
        }
    }
}

impl VisitParts for StreamResponse {
    fn for_each_part(&mut self, visit: &mut dyn FnMut(&mut Part)) {
        match self {
            Self::Task(task) => task.for_each_part(visit),
            Self::Message(message) => message.for_each_part(visit),
            Self::StatusUpdate(update) => {
                if let Some(message) = &mut update.status.message {
                    message.for_each_part(visit);
                }
            }
            Self::ArtifactUpdate(update) => update.artifact.parts.iter_mut().for_each(visit),
        }
    }
}

impl VisitParts for SendResponse {
    fn for_each_part(&mut self, visit: &mut dyn FnMut(&mut Part)) {
        match self {
            Self::Task(task) => task.for_each_part(visit),
            Self::Message(message) => message.for_each_part(visit),
        }
    }
}

impl VisitParts for ListResponse {
    fn for_each_part(&mut self, visit: &mut dyn FnMut(&mut Part)) {
        for task in &mut self.tasks {
            task.for_each_part(visit);
        }
    }
}
