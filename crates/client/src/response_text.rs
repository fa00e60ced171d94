//! What an agent has answered, as text a person can read.

use switchboard_a2a::{Artifact, Part, PartContent, Role, SendResponse, Task, TaskState};

/// The text of a response without text.
const NOTHING: &str = "(no text)";

/// The artifact with the reasoning of coding agents.
const REASONING: &str = "reasoning";

/// The text: the artifacts, else the status message, else the last message of the agent. For a task that failed or waits
/// the status message comes first.
pub fn response_text(response: &SendResponse) -> String {
    let text = match response {
        SendResponse::Message(message) => parts(&message.parts),
        SendResponse::Task(task) if is_explained(task.status.state) => {
            status_text(task).or_else(|| artifact_text(task))
        }
        SendResponse::Task(task) => artifact_text(task).or_else(|| status_text(task)),
    };
    text.unwrap_or_else(|| NOTHING.to_owned())
}

/// Whether the status message says why the task is in this state: it failed, or it waits.
pub fn is_explained(state: TaskState) -> bool {
    state.is_interrupted() || state.is_terminal() && state != TaskState::Completed
}

/// Whether an artifact is no part of the answer, unless there is nothing else: data, which is for programs, and
/// reasoning.
pub fn is_secondary(artifact: &Artifact) -> bool {
    artifact.name.as_deref() == Some(REASONING) || artifact.parts.iter().all(is_data)
}

fn artifact_text(task: &Task) -> Option<String> {
    let (beside, answer): (Vec<&Artifact>, Vec<&Artifact>) = task.artifacts.iter().partition(|made| is_secondary(made));
    let readable = |all: &[&Artifact]| {
        let texts: Vec<String> = all.iter().filter_map(|artifact| parts(&artifact.parts)).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    };
    readable(&answer)
        .or_else(|| status_text(task).filter(|said| !points_to_artifacts(said)))
        .or_else(|| readable(&beside))
}

/// Whether a message of a completed task only says which artifacts hold the answer, as agents hosted by Switchboard do.
pub fn points_to_artifacts(text: &str) -> bool {
    text.trim_start().starts_with("The answer is in the artifact")
}

pub fn is_data(part: &Part) -> bool {
    matches!(part.content, PartContent::Data(_))
}

/// The parts for people: all but data, unless there is nothing else.
pub fn readable_parts(parts: &[Part]) -> impl Iterator<Item = &Part> {
    let only_data = parts.iter().all(is_data);
    parts.iter().filter(move |part| only_data || !is_data(part))
}

fn status_text(task: &Task) -> Option<String> {
    let status = task.status.message.as_ref();
    let history = task.history.iter().rev().filter(|message| message.role == Role::Agent);
    status.into_iter().chain(history).find_map(|message| parts(&message.parts))
}

/// The readable parts: text as it is, files by their name, and data as JSON where there is nothing else. Adjacent texts
/// are joined: they may be chunks of one.
fn parts(parts: &[Part]) -> Option<String> {
    let mut text = String::new();
    let mut is_running = false;
    for part in readable_parts(parts) {
        let (piece, runs) = match &part.content {
            PartContent::Text(piece) => (piece.clone(), true),
            PartContent::Data(data) => (data.as_str().to_owned(), false),
            PartContent::Url(url) => (format!("[file: {url}]"), false),
            PartContent::Raw(bytes) => {
                let name = part.filename.as_deref().or(part.media_type.as_deref()).unwrap_or("unnamed");
                (format!("[file: {name}, {} bytes]", bytes.len()), false)
            }
        };
        let joins = is_running && runs;
        if !joins && !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&piece);
        is_running = runs;
    }
    (!text.trim().is_empty()).then_some(text)
}
