//! Reads a stream frame: the v1.0 member form in one pass, and the bare v0.3 objects distinguished by `kind`,
//! by `type`, or, where a peer leaves both out, by the members they have.

use std::fmt;

use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::StreamResponse;
use crate::json::MetadataBuilder;
use crate::{Json, Metadata};

impl<'de> Deserialize<'de> for StreamResponse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FrameVisitor)
    }
}

struct FrameVisitor;

impl<'de> Visitor<'de> for FrameVisitor {
    type Value = StreamResponse;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with one of task, message, statusUpdate or artifactUpdate")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<StreamResponse, A::Error> {
        let mut bare = MetadataBuilder::default();
        while let Some(key) = access.next_key::<String>()? {
            let member = match FrameKind::of_member(&key) {
                Some(FrameKind::Task) => access.next_value::<Option<_>>()?.map(StreamResponse::Task),
                Some(FrameKind::Message) => access.next_value::<Option<_>>()?.map(StreamResponse::Message),
                Some(FrameKind::Status) => access.next_value::<Option<_>>()?.map(StreamResponse::StatusUpdate),
                Some(FrameKind::Artifact) => access.next_value::<Option<_>>()?.map(StreamResponse::ArtifactUpdate),
                None => {
                    bare.insert(key, access.next_value()?);
                    None
                }
            };
            if let Some(member) = member {
                while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return Ok(member);
            }
        }
        read_bare(&bare.build()).map_err(A::Error::custom)
    }
}

fn read_bare(members: &Metadata) -> Result<StreamResponse, String> {
    let kind = bare_kind(members).ok_or("neither task, message, statusUpdate nor artifactUpdate")?;
    let object = serde_json::to_string(members).and_then(|text| kind.read(&text));
    object.map_err(|error| error.to_string())
}

/// Which of the four a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Task,
    Message,
    Status,
    Artifact,
}

impl FrameKind {
    /// Reads a bare object of this kind.
    pub(crate) fn read(self, json: &str) -> Result<StreamResponse, serde_json::Error> {
        match self {
            Self::Task => serde_json::from_str(json).map(StreamResponse::Task),
            Self::Message => serde_json::from_str(json).map(StreamResponse::Message),
            Self::Status => serde_json::from_str(json).map(StreamResponse::StatusUpdate),
            Self::Artifact => serde_json::from_str(json).map(StreamResponse::ArtifactUpdate),
        }
    }

    /// The member of a v1.0 frame that holds it.
    pub(crate) fn of_member(name: &str) -> Option<Self> {
        match name {
            "task" => Some(Self::Task),
            "message" | "msg" => Some(Self::Message),
            "statusUpdate" | "status_update" => Some(Self::Status),
            "artifactUpdate" | "artifact_update" => Some(Self::Artifact),
            _ => None,
        }
    }

    /// Every name it has as a `kind`, a `type` or the name of an event.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "task" | "Task" => Some(Self::Task),
            "message" | "Message" => Some(Self::Message),
            "status-update" | "statusUpdate" | "task/status" | "TaskStatusUpdateEvent" => Some(Self::Status),
            "artifact-update" | "artifactUpdate" | "task/artifact" | "TaskArtifactUpdateEvent" => Some(Self::Artifact),
            _ => None,
        }
    }
}

fn bare_kind(members: &Metadata) -> Option<FrameKind> {
    let member = |name: &str| members.get(name).map(Json::as_str);
    let tag = member("kind").or_else(|| member("type")).unwrap_or_default();
    if let Some(kind) = FrameKind::from_name(tag.trim_matches('"')) {
        return Some(kind);
    }
    let has = |names: [&str; 2]| names.into_iter().any(|name| member(name).is_some());
    // A message may also have a task id, and an update a status: the order of the questions matters.
    if has(["messageId", "message_id"]) {
        Some(FrameKind::Message)
    } else if member("artifact").is_some() {
        Some(FrameKind::Artifact)
    } else if has(["taskId", "task_id"]) && member("status").is_some() {
        Some(FrameKind::Status)
    } else if member("id").is_some() {
        Some(FrameKind::Task)
    } else {
        None
    }
}
