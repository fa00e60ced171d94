//! What earlier turns of a conversation have shown of a task. A task that asks goes on in the same artifacts, and its answer is
//! not to be read again with every turn.

use std::collections::BTreeMap;

use switchboard_a2a::{Artifact, ArtifactId, Part, SendResponse, Task, TaskId};

use crate::commands::calling::answer::text_of;

/// The artifacts of the open task as they were shown.
#[derive(Debug, Default)]
pub(super) struct ShownBefore {
    task: Option<TaskId>,
    artifacts: BTreeMap<ArtifactId, Artifact>,
}

impl ShownBefore {
    /// Takes note of a turn that was shown. After its end a task is not gone on with.
    pub(super) fn note(&mut self, response: &SendResponse) {
        *self = match response {
            SendResponse::Task(task) if !task.status.state.is_terminal() => {
                let artifacts = task.artifacts.iter().map(|artifact| (artifact.artifact_id.clone(), artifact.clone()));
                Self { task: Some(task.id.clone()), artifacts: artifacts.collect() }
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

    /// Leaves out of an artifact what was shown; whether anything is left. One that begins otherwise was replaced.
    fn has_more(&self, artifact: &mut Artifact) -> bool {
        let Some(shown) = self.artifacts.get(&artifact.artifact_id) else { return true };
        let text = text_of(artifact);
        let Some(rest) = text.strip_prefix(text_of(shown).as_str()) else { return true };
        artifact.parts.retain(|part| part.as_text().is_none() && !shown.parts.contains(part));
        if !rest.trim().is_empty() {
            artifact.parts.insert(0, Part::text(rest.trim_start_matches('\n')));
        }
        !artifact.parts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use switchboard_a2a::{ContextId, PartContent, TaskState, TaskStatus};

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
        assert_eq!(left(&before, "another").as_deref(), Some("another"), "it was replaced");
        let mut with_file = task(TaskState::Completed, &["one"]);
        let file = Part::new(PartContent::Raw(b"report".to_vec()));
        with_file.artifacts[0].parts.push(file.clone());
        before.leave_out(&mut with_file);
        assert_eq!(with_file.artifacts[0].parts, [file]);
        before.note(&SendResponse::Task(task(TaskState::Completed, &["one"])));
        assert_eq!(left(&before, "one\n\ntwo").as_deref(), Some("one\n\ntwo"), "another task may have the same names");
    }
}
