//! What a task has to say, as one text: for callers that know texts only.

use switchboard_a2a::{Message, Part, Task, TaskState};
use switchboard_engine::state_label;

/// In place of a text where there is nothing at all.
const NO_TEXT: &str = "(no text)";

/// The question of a task that waits, the result of one that has ended: the text of its artifacts, else its last message,
/// else that there is no text and what there is instead.
pub(crate) fn text(task: &Task) -> String {
    let words = words(task);
    if !words.trim().is_empty() {
        return words;
    }
    let said = task.status.message.iter().flat_map(|message| &message.parts);
    let made = task.artifacts.iter().flat_map(|artifact| &artifact.parts);
    match said.chain(made).filter(|part| part.as_text().is_none()).count() {
        0 => NO_TEXT.to_owned(),
        1 => format!("(no text: task {} has one part that is none)", task.id),
        count => format!("(no text: task {} has {count} parts that are none)", task.id),
    }
}

/// The text of a message in place of a task.
pub(crate) fn text_of(message: &Message) -> String {
    let words = message.joined_text();
    if words.trim().is_empty() { NO_TEXT.to_owned() } else { words }
}

fn words(task: &Task) -> String {
    let message = || task.status.message.as_ref().map(Message::joined_text).unwrap_or_default();
    if task.status.state != TaskState::Completed {
        return message();
    }
    let parts = task.artifacts.iter().flat_map(|artifact| &artifact.parts);
    let texts: Vec<&str> = parts.filter_map(Part::as_text).filter(|text| !text.trim().is_empty()).collect();
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
    let said = words(task);
    if said.is_empty() { format!("task {} is {}", task.id, state_text(task.status.state)) } else { said }
}
