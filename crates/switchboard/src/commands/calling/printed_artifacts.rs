//! The artifacts that earlier turns of a chat have printed. A task that asks continues the same artifacts after the answer,
//! and only what is new is printed with each turn.

use std::collections::BTreeMap;

use switchboard_a2a::{Artifact, ArtifactId, Part, SendResponse, Task, TaskId};

use crate::commands::calling::answer::text_of;

/// The artifacts of the open task as they were printed.
#[derive(Debug, Default)]
pub(super) struct PrintedArtifacts {
    task: Option<TaskId>,
    artifacts: BTreeMap<ArtifactId, Artifact>,
}

impl PrintedArtifacts {
    /// Records a printed turn. A task in a terminal state is not continued, so it is forgotten.
    pub(super) fn record(&mut self, response: &SendResponse) {
        *self = match response {
            SendResponse::Task(task) if !task.status.state.is_terminal() => {
                let artifacts = task.artifacts.iter().map(|artifact| (artifact.artifact_id.clone(), artifact.clone()));
                Self { task: Some(task.id.clone()), artifacts: artifacts.collect() }
            }
            _ => Self::default(),
        };
    }

    /// Removes the printed content from a task.
    pub(super) fn remove_printed(&self, task: &mut Task) {
        if self.task.as_ref() == Some(&task.id) {
            task.artifacts.retain_mut(|artifact| self.has_more(artifact));
        }
    }

    /// Removes the printed content from an artifact; whether anything is left. One with another beginning was replaced.
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
        let mut before = PrintedArtifacts::default();
        before.record(&SendResponse::Task(task(TaskState::InputRequired, &["one"])));
        let left = |before: &PrintedArtifacts, text: &str| {
            let mut next = task(TaskState::Completed, &[text]);
            before.remove_printed(&mut next);
            next.artifacts.first().map(|artifact| artifact.parts[0].as_text().unwrap().to_owned())
        };
        assert_eq!(left(&before, "one\n\ntwo").as_deref(), Some("two"));
        assert_eq!(left(&before, "one\n"), None);
        assert_eq!(left(&before, "x").as_deref(), Some("x"));
        assert_eq!(left(&before, "another").as_deref(), Some("another"), "it was replaced");
        let mut with_file = task(TaskState::Completed, &["one"]);
        let file = Part::new(PartContent::Raw(b"report".to_vec()));
        with_file.artifacts[0].parts.push(file.clone());
        before.remove_printed(&mut with_file);
        assert_eq!(with_file.artifacts[0].parts, [file]);
        before.record(&SendResponse::Task(task(TaskState::Completed, &["one"])));
        assert_eq!(left(&before, "one\n\ntwo").as_deref(), Some("one\n\ntwo"), "another task may have the same names");
    }
}
