//! What earlier turns of a conversation have shown of a task. A task that asks goes on in the same artifacts, and its answer is
//! not to be read again with every turn.

use std::collections::BTreeMap;

use switchboard_a2a::{Artifact, ArtifactId, Part, SendResponse, Task, TaskId};

/// The text that was shown of each artifact of the open task, in bytes.
#[derive(Debug, Default)]
pub(super) struct ShownBefore {
    task: Option<TaskId>,
    texts: BTreeMap<ArtifactId, usize>,
}

impl ShownBefore {
    /// Takes note of a turn that was shown. After its end a task is not gone on with.
    pub(super) fn note(&mut self, response: &SendResponse) {
        *self = match response {
            SendResponse::Task(task) if !task.status.state.is_terminal() => {
                let length = |artifact: &Artifact| artifact.parts.iter().filter_map(Part::as_text).map(str::len).sum();
                let texts = task.artifacts.iter().map(|artifact| (artifact.artifact_id.clone(), length(artifact)));
                Self { task: Some(task.id.clone()), texts: texts.collect() }
            }
            _ => Self::default(),
        };
    }

    /// Leaves out of a task what was shown.
    pub(super) fn leave_out(&self, task: &mut Task) {
        if self.task.as_ref() == Some(&task.id) {
            task.artifacts.retain_mut(|artifact| self.has_more(artifact));
        }
    }

    /// Leaves out of an artifact what was shown; whether anything is left. One that is shorter now was replaced.
    fn has_more(&self, artifact: &mut Artifact) -> bool {
        let Some(shown) = self.texts.get(&artifact.artifact_id) else { return true };
        let text: String = artifact.parts.iter().filter_map(Part::as_text).collect();
        match text.get(*shown..) {
            None => true,
            Some(rest) if rest.trim().is_empty() => false,
            Some(rest) => {
                artifact.parts = vec![Part::text(rest.trim_start_matches('\n'))];
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use switchboard_a2a::{ContextId, TaskState, TaskStatus};

    use super::*;

    fn task(state: TaskState, texts: &[&str]) -> Task {
        let artifact = |text: &&str| Artifact { artifact_id: ArtifactId::from("a"), ..Artifact::text(*text) };
        Task {
            id: TaskId::from("t"),
            context_id: ContextId::from("c"),
            status: TaskStatus { state, message: None, timestamp: None },
            artifacts: texts.iter().map(artifact).collect(),
            history: Vec::new(),
            metadata: None,
        }
    }

    #[test]
    fn only_what_is_new_is_left() {
        let mut before = ShownBefore::default();
        before.note(&SendResponse::Task(task(TaskState::InputRequired, &["one"])));
        let left = |before: &ShownBefore, text: &str| {
            let mut next = task(TaskState::Completed, &[text]);
            before.leave_out(&mut next);
            next.artifacts.first().map(|artifact| artifact.parts[0].as_text().unwrap().to_owned())
        };
        assert_eq!(left(&before, "one\n\ntwo").as_deref(), Some("two"));
        assert_eq!(left(&before, "one\n"), None);
        assert_eq!(left(&before, "x").as_deref(), Some("x"));
        before.note(&SendResponse::Task(task(TaskState::Completed, &["one"])));
        assert_eq!(left(&before, "one\n\ntwo").as_deref(), Some("one\n\ntwo"), "another task may have the same names");
    }
}
