//! Frames whose event name is the discriminator: updates without a `kind`, without the task's id, or with nothing but
//! the status or the artifact.

use crate::model::FrameKind;
use crate::v03::part_data;
use crate::{Dialect, Json, Metadata, StreamResponse, decode};

/// Reads the data of a named event. A discriminator in the data wins over the name.
pub(super) fn read(dialect: Dialect, kind: FrameKind, json: &str) -> Result<StreamResponse, serde_json::Error> {
    let mut members: Metadata = serde_json::from_str(json)?;
    if has_own_discriminator(&members, kind) {
        return decode::decode_stream(dialect, json.as_bytes());
    }
    match kind {
        FrameKind::Task | FrameKind::Message => {}
        FrameKind::Status => {
            nest_under(&mut members, "status", &["state"], &["message", "update", "timestamp"])?;
            if let Some(state) = members.get("status").filter(|status| status.as_text().is_some()).cloned() {
                members.insert("status", object([("state", state)])?);
            }
            name_task(&mut members)?;
        }
        FrameKind::Artifact => {
            let known_by = ["artifactId", "artifact_id"];
            nest_under(&mut members, "artifact", &known_by, &["name", "description", "parts", "extensions"])?;
            name_task(&mut members)?;
        }
    }
    let mut frame = kind.read(&serde_json::to_string(&members)?)?;
    if dialect == Dialect::V03Rest {
        part_data::unwrap_nested(&mut frame);
    }
    Ok(frame)
}

fn has_own_discriminator(members: &Metadata, kind: FrameKind) -> bool {
    let is_object = |name: &str| members.get(name).is_some_and(Json::is_object);
    let wrappers = ["task", "statusUpdate", "status_update", "artifactUpdate", "artifact_update"];
    if wrappers.into_iter().any(is_object) {
        return true;
    }
    // A bare status has a message of its own.
    let has = |name: &str| members.get(name).is_some();
    if (is_object("message") || is_object("msg")) && !["state", "status", "artifact"].into_iter().any(has) {
        return true;
    }
    let tag = members.get("kind").or_else(|| members.get("type")).and_then(Json::as_text);
    tag.and_then(|tag| FrameKind::from_name(&tag)).is_some_and(|tagged| tagged != kind)
}

/// Where the inner object stands alone, puts it under the member it belongs to.
fn nest_under(members: &mut Metadata, name: &str, known_by: &[&str], others: &[&str]) -> Result<(), serde_json::Error> {
    if members.get(name).is_some() || !known_by.iter().any(|key| members.get(key).is_some()) {
        return Ok(());
    }
    let moved = known_by.iter().chain(others).filter_map(|key| members.remove(key).map(|value| (*key, value)));
    let inner = object(moved.collect::<Vec<_>>())?;
    members.insert(name, inner);
    Ok(())
}

/// Older peers call the task's id just `id`; some leave it out, since the reader asked for one task.
fn name_task(members: &mut Metadata) -> Result<(), serde_json::Error> {
    if members.get("taskId").is_some() || members.get("task_id").is_some() {
        return Ok(());
    }
    let id = members.remove("id").map_or_else(|| Json::from_serialize(""), Ok)?;
    members.insert("taskId", id);
    Ok(())
}

fn object<'a>(members: impl IntoIterator<Item = (&'a str, Json)>) -> Result<Json, serde_json::Error> {
    let mut object = Metadata::default();
    for (key, value) in members {
        object.insert(key, value);
    }
    Json::from_serialize(&object)
}
