//! Line breaks between the text parts of messages and artifacts. Streamed chunks of one text are parts as well, and a
//! finished artifact does not show which they were, so only artifacts that are known to have come whole are changed.

use std::collections::BTreeSet;

use switchboard_a2a::{ArtifactId, Part, PartContent, SendResponse, Task};

/// Separates the text parts of a result.
pub(super) fn response(response: &mut SendResponse, whole: &BTreeSet<ArtifactId>) {
    match response {
        SendResponse::Task(found) => task(found, whole),
        SendResponse::Message(message) => parts(&mut message.parts),
    }
}

/// The same for a task. Messages are never streamed in chunks.
pub(super) fn task(task: &mut Task, whole: &BTreeSet<ArtifactId>) {
    for message in task.status.message.iter_mut().chain(&mut task.history) {
        parts(&mut message.parts);
    }
    for artifact in task.artifacts.iter_mut().filter(|artifact| whole.contains(&artifact.artifact_id)) {
        parts(&mut artifact.parts);
    }
}

fn parts(parts: &mut [Part]) {
    for index in 1..parts.len() {
        let follows = matches!(parts[index].content, PartContent::Text(_));
        if let PartContent::Text(text) = &mut parts[index - 1].content
            && follows
            && !text.ends_with('\n')
        {
            text.push('\n');
        }
    }
}
