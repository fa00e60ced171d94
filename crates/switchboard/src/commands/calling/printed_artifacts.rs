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
