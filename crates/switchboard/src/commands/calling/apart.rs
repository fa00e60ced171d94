//! Parts that were said beside each other are read on lines of their own. The pieces of a text that came one after the other
//! are parts, too, and nothing tells them apart afterwards, so that only what is known to have come whole is changed.

use std::collections::BTreeSet;

use switchboard_a2a::{ArtifactId, Part, PartContent, SendResponse, Task};

/// Puts the parts of a result apart, for people to read.
pub(super) fn response(response: &mut SendResponse, whole: &BTreeSet<ArtifactId>) {
    match response {
        SendResponse::Task(told) => task(told, whole),
        SendResponse::Message(message) => parts(&mut message.parts),
    }
}

/// The same for a task. Messages are never said in pieces.
pub(super) fn task(task: &mut Task, whole: &BTreeSet<ArtifactId>) {
    for message in task.status.message.iter_mut().chain(&mut task.history) {
        parts(&mut message.parts);
    }
    for artifact in task.artifacts.iter_mut().filter(|artifact| whole.contains(&artifact.artifact_id)) {
        parts(&mut artifact.parts);
    }
}

fn parts(parts: &mut [Part]) {
    for place in 1..parts.len() {
        let follows = matches!(parts[place].content, PartContent::Text(_));
        if let PartContent::Text(text) = &mut parts[place - 1].content
            && follows
            && !text.ends_with('\n')
        {
            text.push('\n');
        }
    }
}
