//! What a task has to say, as one text: for callers that know texts only.

use switchboard_a2a::{Part, Task, TaskState};
use switchboard_engine::state_label;

/// The question of a task that waits, the result of one that has ended: the text of its artifacts, else its last message.
pub(crate) fn text(task: &Task) -> String {
    let message = || task.status.message.as_ref().map(switchboard_a2a::Message::joined_text).unwrap_or_default();
    if task.status.state != TaskState::Completed {
        return message();
    }
    let parts = task.artifacts.iter().flat_map(|artifact| &artifact.parts);
    let texts: Vec<&str> = parts.filter_map(Part::as_text).filter(|text| !text.is_empty()).collect();
    if texts.is_empty() { message() } else { texts.join("\n") }
}

/// A state as earlier hubs write it, such as `input-required`.
pub(crate) fn state_text(state: TaskState) -> String {
    state_label(state).replace('_', "-")
}

/// Whether a task has ended without a result.
pub(crate) fn has_failed(state: TaskState) -> bool {
    matches!(state, TaskState::Failed | TaskState::Rejected | TaskState::Canceled)
}

/// Why a task has ended without a result, in words.
pub(crate) fn failure(task: &Task) -> String {
    let said = text(task);
    if said.is_empty() { format!("task {} is {}", task.id, state_text(task.status.state)) } else { said }
}
