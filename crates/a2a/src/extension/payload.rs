//! How the payload of an extension is carried by artifacts and messages.
//!
//! Three generations of peers are in use. The newest puts the payload into `metadata` under the extension's URI. The two
//! before it add a data part whose `metadata.mimeType` is the extension's media type; v0.3 writes that part with
//! `kind: "data"`, v1.0 without, and both are the same [`Part`] here. Where both carriers are present they say the same,
//! so the newest is read and the other one is not: nothing is counted twice.

use serde::Serialize;

use super::confidence::Confidence;
use super::cost::Cost;
use super::tool_call::ToolCall;
use super::worldstate_delta::WorldstateDelta;
use crate::{Artifact, Json, Message, Metadata, Part, Task};

/// Which carriers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emit {
    /// The newest: metadata by URI.
    #[default]
    Newest,
    /// The data part of older readers as well.
    All,
}

/// What an extension says about an artifact or a message.
pub trait Payload: Serialize + Sized {
    /// The extension's URI.
    const URI: &'static str;
    /// Its media types, the one that is written first.
    const MEDIA_TYPES: &'static [&'static str];

    /// Reads a payload; nothing if it lacks what it is about. Members of a wrong type are as good as absent.
    fn read(payload: &Json) -> Option<Self>;

    /// Everything of this extension among these parts and their metadata, in order.
    fn find(metadata: Option<&Metadata>, parts: &[Part]) -> Vec<Self> {
        if let Some(found) = Self::in_metadata(metadata) {
            return vec![found];
        }
        parts
            .iter()
            .filter(|part| is_carrier(part, Self::MEDIA_TYPES))
            .filter_map(|part| Self::read(part.as_data()?))
            .collect()
    }

    /// The payload under the extension's URI.
    fn in_metadata(metadata: Option<&Metadata>) -> Option<Self> {
        Self::read(metadata?.get(Self::URI)?)
    }

    /// Everything that an artifact carries.
    fn in_artifact(artifact: &Artifact) -> Vec<Self> {
        Self::find(artifact.metadata.as_ref(), &artifact.parts)
    }

    /// Everything that a message carries.
    fn in_message(message: &Message) -> Vec<Self> {
        Self::find(message.metadata.as_ref(), &message.parts)
    }

    /// The last one of a whole task: of its artifacts, else of its status message, else of its own metadata.
    fn last_in_task(task: &Task) -> Option<Self> {
        let of_artifacts = task.artifacts.iter().rev().find_map(|artifact| Self::in_artifact(artifact).pop());
        let of_status = || Self::in_message(task.status.message.as_ref()?).pop();
        of_artifacts.or_else(of_status).or_else(|| Self::in_metadata(task.metadata.as_ref()))
    }

    /// Adds it to an artifact. Nothing happens if it cannot be JSON.
    fn write_to_artifact(&self, artifact: &mut Artifact, emit: Emit) {
        write(self, &mut artifact.metadata, &mut artifact.parts, &mut artifact.extensions, emit);
    }

    /// Adds it to a message. Nothing happens if it cannot be JSON.
    fn write_to_message(&self, message: &mut Message, emit: Emit) {
        write(self, &mut message.metadata, &mut message.parts, &mut message.extensions, emit);
    }
}

/// Whether a data part says that it carries one of the media types. Readers are told to look at `metadata.mimeType`; a
/// part whose own media type is such a one can mean nothing else.
fn is_carrier(part: &Part, media_types: &[&str]) -> bool {
    let said = part.metadata.as_ref().and_then(|metadata| metadata.get("mimeType")).and_then(Json::as_text);
    let said = said.as_deref().or(part.media_type.as_deref());
    said.is_some_and(|said| media_types.iter().any(|known| known.eq_ignore_ascii_case(said)))
}

/// The data parts that older readers miss among these parts: one for each payload that is in metadata alone.
pub(crate) fn older_carriers(metadata: &Metadata, parts: &[Part]) -> Vec<Part> {
    let carried = [
        (Cost::URI, Cost::MEDIA_TYPES),
        (Confidence::URI, Confidence::MEDIA_TYPES),
        (WorldstateDelta::URI, WorldstateDelta::MEDIA_TYPES),
        (ToolCall::URI, ToolCall::MEDIA_TYPES),
    ];
    let missing = |(uri, media_types): (&str, &'static [&'static str])| {
        let payload = metadata.get(uri).filter(|payload| payload.is_object())?;
        let is_there = parts.iter().any(|part| is_carrier(part, media_types));
        data_part(media_types.first().filter(|_| !is_there)?, payload.clone())
    };
    carried.into_iter().filter_map(missing).collect()
}

fn write<P: Payload>(
    payload: &P,
    metadata: &mut Option<Metadata>,
    parts: &mut Vec<Part>,
    extensions: &mut Vec<String>,
    emit: Emit,
) {
    let Ok(json) = Json::from_serialize(payload) else { return };
    if let (Emit::All, Some(media_type)) = (emit, P::MEDIA_TYPES.first()) {
        parts.extend(data_part(media_type, json.clone()));
    }
    metadata.get_or_insert_default().insert(P::URI, json);
    if !extensions.iter().any(|uri| uri == P::URI) {
        extensions.push(P::URI.to_owned());
    }
}

fn data_part(media_type: &str, payload: Json) -> Option<Part> {
    let mut metadata = Metadata::default();
    metadata.insert("mimeType", Json::from_serialize(media_type).ok()?);
    Some(Part { metadata: Some(metadata), media_type: Some("application/json".to_owned()), ..Part::data(payload) })
}
