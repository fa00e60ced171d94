//! v0.3 REST writes a data part as `{"data":{"data":{…}}}`; the outer object is the part's own message type.

use super::compat;
use crate::{Json, Message, Metadata, Part, PartContent, StreamResponse, Task};

/// Undoes the nesting in a message.
pub(crate) fn message(message: &mut Message) {
    message.parts.iter_mut().for_each(part);
}

/// Undoes the nesting in a task.
pub(crate) fn task(task: &mut Task) {
    task.status.message.iter_mut().for_each(message);
    task.history.iter_mut().for_each(message);
    task.artifacts.iter_mut().flat_map(|artifact| &mut artifact.parts).for_each(part);
}

/// Undoes the nesting in a stream frame.
pub(crate) fn frame(frame: &mut StreamResponse) {
    match frame {
        StreamResponse::Task(of) => task(of),
        StreamResponse::Message(of) => message(of),
        StreamResponse::StatusUpdate(update) => update.status.message.iter_mut().for_each(message),
        StreamResponse::ArtifactUpdate(update) => update.artifact.parts.iter_mut().for_each(part),
    }
}

fn part(part: &mut Part) {
    let PartContent::Data(value) = &part.content else {
        return;
    };
    if let Some(inner) = nested_data(value) {
        part.content = PartContent::Data(inner);
    }
    compat::unwrap_value(part);
}

/// The inner object, if `data` is the only member: callers who wrote the nesting once are understood too.
fn nested_data(value: &Json) -> Option<Json> {
    if !value.is_object() {
        return None;
    }
    let mut object: Metadata = value.read().ok()?;
    if object.len() != 1 {
        return None;
    }
    object.remove("data").filter(Json::is_object)
}
