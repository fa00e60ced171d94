//! Catch-up: derives the missed events from the emitted task and a snapshot of the task as the agent has it now.

use switchboard_a2a::{
    Artifact, Metadata, Part, PartContent, Role, StreamResponse, Task, TaskArtifactUpdate, TaskState, TaskStatus,
    TaskStatusUpdate,
};

use super::GapReason;
use super::seen_messages::SeenMessages;

/// The events between the emitted task and the snapshot, and what cannot be derived. An artifact that does not continue
/// the emitted one was replaced if that came from a snapshot; if it came in chunks, some of them are missing. The emitted
/// task has not ended: nothing is fetched after its end.
pub(super) fn difference(
    emitted: &Task,
    messages: &SeenMessages,
    now: &Task,
    is_snapshot: bool,
) -> (Vec<StreamResponse>, Option<GapReason>) {
    let mut missing = None;
    // Some agents have the status message in the history already.
    let is_current = |id: &str| now.status.message.as_ref().is_some_and(|current| current.message_id.as_str() == id);
    let messages = now.history.iter().filter(|message| {
        let id = message.message_id.as_str();
        message.role == Role::Agent && !messages.contains(message) && (id.is_empty() || !is_current(id))
    });
    // A message in the history belongs to an earlier status.
    let passed = messages.map(|message| TaskStatus {
        state: TaskState::Working,
        message: Some(message.clone()),
        timestamp: None,
    });
    let mut events: Vec<_> = passed.map(|status| status_update(now, status, None)).collect();
    for artifact in &now.artifacts {
        let known = emitted.artifacts.iter().find(|known| known.artifact_id == artifact.artifact_id);
        match known.map(|known| remaining_parts(&known.parts, &artifact.parts)) {
            None => events.push(artifact_update(now, artifact.clone(), false)),
            Some(Some(parts)) if parts.is_empty() => {}
            Some(Some(parts)) => {
                events.push(artifact_update(now, Artifact { parts, ..artifact.clone() }, true));
            }
            Some(None) => {
                if !is_snapshot {
                    missing = Some(GapReason::Artifact(artifact.artifact_id.to_string()));
                }
                events.push(artifact_update(now, artifact.clone(), false));
            }
        }
    }
    let is_there = |known: &&Artifact| now.artifacts.iter().any(|artifact| artifact.artifact_id == known.artifact_id);
    if let Some(lost) = emitted.artifacts.iter().find(|known| !is_there(known)) {
        missing = Some(GapReason::Forgotten(lost.artifact_id.to_string()));
    }
    if is_other(&emitted.status, &now.status) {
        events.push(status_update(now, now.status.clone(), new_metadata(emitted, now)));
    }
    (events, missing)
}

/// The metadata of the snapshot in place of those of its last event, which are not known: what was not emitted before,
/// and at the end all of it, since readers take from there why the task has ended and what it has used.
fn new_metadata(emitted: &Task, now: &Task) -> Option<Metadata> {
    let mut metadata = now.metadata.clone()?;
    if !now.status.state.is_terminal() {
        let value_in = |task: &Task, key: &str| task.metadata.as_ref().and_then(|all| all.get(key).cloned());
        metadata.retain(|key| value_in(emitted, key) != value_in(now, key));
    }
    (!metadata.is_empty()).then_some(metadata)
}

/// Keeps the message of a status where a snapshot has the same state without one: many agents say things in their events
/// only.
pub(super) fn keep_message(emitted: &TaskStatus, now: &mut TaskStatus) {
    if now.state == emitted.state && now.message.is_none() {
        now.message.clone_from(&emitted.message);
    }
}

/// Whether two statuses differ. Some agents have other times in streams than in snapshots, so times do not count.
pub(super) fn is_other(emitted: &TaskStatus, now: &TaskStatus) -> bool {
    let message_of = |status: &TaskStatus| {
        status.message.as_ref().map(|message| (message.message_id.clone(), message.joined_text()))
    };
    emitted.state != now.state || message_of(emitted) != message_of(now)
}

/// The parts after the known ones; none if those are not a prefix. Adjacent texts count as one: agents join them as
/// they like.
pub fn remaining_parts(known: &[Part], now: &[Part]) -> Option<Vec<Part>> {
    let mut rest: Vec<Part> = joined(now);
    rest.reverse();
    for part in joined(known) {
        let next = rest.pop()?;
        match (part.as_text(), next.as_text()) {
            (Some(known), Some(text)) => {
                let more = text.strip_prefix(known)?;
                if !more.is_empty() {
                    rest.push(Part { content: PartContent::Text(more.to_owned()), ..next });
                }
            }
            _ if part == next => {}
            _ => return None,
        }
    }
    rest.reverse();
    Some(rest)
}

fn joined(parts: &[Part]) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        if let Some(text) = part.as_text()
            && let Some(Part { content: PartContent::Text(last), .. }) = joined.last_mut()
        {
            last.push_str(text);
        } else {
            joined.push(part.clone());
        }
    }
    joined
}

fn status_update(task: &Task, status: TaskStatus, metadata: Option<Metadata>) -> StreamResponse {
    StreamResponse::StatusUpdate(TaskStatusUpdate {
        task_id: task.id.clone(),
        context_id: task.context_id.clone(),
        status,
        metadata,
    })
}

fn artifact_update(task: &Task, artifact: Artifact, append: bool) -> StreamResponse {
    StreamResponse::ArtifactUpdate(TaskArtifactUpdate {
        task_id: task.id.clone(),
        context_id: task.context_id.clone(),
        artifact,
        append,
        last_chunk: false,
        metadata: None,
    })
}
