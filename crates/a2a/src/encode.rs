//! Answers as bytes, in each dialect. v1.0 is the model's own JSON; v0.3 goes through the views in `v03`.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::v03::{self, Binding};
use crate::{Artifact, Dialect, ListResponse, Message, PushConfig, StreamResponse, Task, TaskStatusUpdate};

/// A bare task, as getting and cancelling answer.
pub fn encode_task(dialect: Dialect, task: &Task) -> Vec<u8> {
    match Binding::of(dialect) {
        None => to_bytes(task),
        Some(binding) => to_bytes(&v03::task(binding, task)),
    }
}

/// A bare message.
pub fn encode_message(dialect: Dialect, message: &Message) -> Vec<u8> {
    match Binding::of(dialect) {
        None => to_bytes(message),
        Some(binding) => to_bytes(&v03::message(binding, message)),
    }
}

/// The answer to a sent message that made or continued a task.
pub fn encode_send_task(dialect: Dialect, task: &Task) -> Vec<u8> {
    match dialect {
        Dialect::V03Rpc => encode_task(dialect, task),
        Dialect::V1 | Dialect::V03Rest => in_member("task", &encode_task(dialect, task)),
    }
}

/// The answer to a sent message that was replied to directly.
pub fn encode_send_message(dialect: Dialect, message: &Message) -> Vec<u8> {
    match dialect {
        Dialect::V03Rpc => encode_message(dialect, message),
        Dialect::V1 | Dialect::V03Rest => in_member("message", &encode_message(dialect, message)),
    }
}

/// One stream frame. `is_final` says that the stream ends here; only v0.3 status updates carry it.
pub fn encode_stream(dialect: Dialect, frame: &StreamResponse, is_final: bool) -> Vec<u8> {
    let Some(binding) = Binding::of(dialect) else {
        return to_bytes(frame);
    };
    match frame {
        StreamResponse::Task(task) => encode_send_task(dialect, task),
        StreamResponse::Message(message) => encode_send_message(dialect, message),
        StreamResponse::StatusUpdate(update) => {
            wrapped(binding, "statusUpdate", to_bytes(&v03::status_update(binding, update, is_final)))
        }
        StreamResponse::ArtifactUpdate(update) => {
            wrapped(binding, "artifactUpdate", to_bytes(&v03::artifact_update(binding, update)))
        }
    }
}

/// A change of status with what the task has made, as a notification: the parts of the artifact, whole.
pub fn encode_status_with_artifact(
    dialect: Dialect,
    update: &TaskStatusUpdate,
    is_final: bool,
    artifact: Option<&Artifact>,
) -> Vec<u8> {
    match Binding::of(dialect) {
        None => {
            let artifact = artifact.map(CompleteArtifact::of);
            in_member("statusUpdate", &to_bytes(&WithArtifact { update, artifact }))
        }
        Some(binding) => {
            let artifact = artifact.map(|artifact| CompleteArtifact::of(v03::artifact(binding, artifact)));
            let update = v03::status_update(binding, update, is_final);
            wrapped(binding, "statusUpdate", to_bytes(&WithArtifact { update, artifact }))
        }
    }
}

/// A stored v1.0 frame in the reader's dialect. Fails only if the stored bytes are not one.
pub fn from_v1(dialect: Dialect, v1_frame: &[u8], is_final: bool) -> Result<Vec<u8>, serde_json::Error> {
    if dialect == Dialect::V1 {
        return Ok(v1_frame.to_vec());
    }
    let frame: StreamResponse = serde_json::from_slice(v1_frame)?;
    Ok(encode_stream(dialect, &frame, is_final))
}

/// A page of tasks. Every key is always there; `artifacts` is there exactly when it was asked for.
pub fn encode_list(dialect: Dialect, page: &ListResponse, include_artifacts: bool) -> Vec<u8> {
    let bytes = Vec::with_capacity(64 + page.tasks.len() * 256);
    let mut writer = ListWriter::begin(dialect, include_artifacts, bytes);
    for task in &page.tasks {
        writer.task(task);
    }
    writer.end(&page.next_page_token, page.page_size, page.total_size)
}

/// Writes a page of tasks one after the other, for those who do not hold all of them at once.
pub struct ListWriter {
    dialect: Dialect,
    include_artifacts: bool,
    bytes: Vec<u8>,
    /// Where the page begins in the bytes.
    start: usize,
    tasks: usize,
}

impl ListWriter {
    /// Begins a page at the end of the bytes.
    pub fn begin(dialect: Dialect, include_artifacts: bool, mut bytes: Vec<u8>) -> Self {
        let start = bytes.len();
        bytes.extend_from_slice(b"{\"tasks\":[");
        Self { dialect, include_artifacts, bytes, start, tasks: 0 }
    }

    /// Adds a task.
    pub fn task(&mut self, task: &Task) {
        if self.tasks > 0 {
            self.bytes.push(b',');
        }
        let include_artifacts = self.include_artifacts;
        match Binding::of(self.dialect) {
            None => append(&mut self.bytes, &ListedTask { task, include_artifacts }),
            Some(binding) => append(&mut self.bytes, &v03::listed_task(binding, task, include_artifacts)),
        }
        self.tasks += 1;
    }

    /// Adds a task unless the page would then be larger than `max_bytes`; says whether it did. The first is always added.
    pub fn task_within(&mut self, task: &Task, max_bytes: usize) -> bool {
        let before = self.bytes.len();
        self.task(task);
        if self.tasks > 1 && self.bytes.len() - self.start > max_bytes {
            self.bytes.truncate(before);
            self.tasks -= 1;
            return false;
        }
        true
    }

    /// Ends the page and gives the bytes back.
    #[must_use]
    pub fn end(mut self, next_page_token: &str, page_size: u32, total_size: u64) -> Vec<u8> {
        self.bytes.extend_from_slice(b"],\"nextPageToken\":");
        append(&mut self.bytes, next_page_token);
        self.bytes.extend_from_slice(format!(",\"pageSize\":{page_size},\"totalSize\":{total_size}}}").as_bytes());
        self.bytes
    }
}

/// One webhook.
pub fn encode_push_config(dialect: Dialect, config: &PushConfig) -> Vec<u8> {
    match Binding::of(dialect) {
        None => to_bytes(config),
        Some(binding) => to_bytes(&v03::push_config(binding, config)),
    }
}

/// A task's webhooks: a bare array on v0.3 JSON-RPC, an object elsewhere.
pub fn encode_push_list(dialect: Dialect, configs: &[PushConfig], next_page_token: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(if dialect == Dialect::V03Rpc { b"[" } else { b"{\"configs\":[" });
    for (index, config) in configs.iter().enumerate() {
        if index > 0 {
            bytes.push(b',');
        }
        bytes.extend_from_slice(&encode_push_config(dialect, config));
    }
    bytes.push(b']');
    if dialect != Dialect::V03Rpc {
        bytes.extend_from_slice(b",\"nextPageToken\":");
        append(&mut bytes, next_page_token);
        bytes.push(b'}');
    }
    bytes
}

#[derive(Serialize)]
struct WithArtifact<U, A> {
    #[serde(flatten)]
    update: U,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<CompleteArtifact<A>>,
}

/// An artifact that is all there.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CompleteArtifact<A> {
    #[serde(flatten)]
    artifact: A,
    append: bool,
    last_chunk: bool,
}

impl<A> CompleteArtifact<A> {
    fn of(artifact: A) -> Self {
        Self { artifact, append: false, last_chunk: true }
    }
}

/// A v1.0 task in a page, where the `artifacts` key has a rule of its own.
struct ListedTask<'a> {
    task: &'a Task,
    include_artifacts: bool,
}

impl Serialize for ListedTask<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Task { id, context_id, status, artifacts, history, metadata } = self.task;
        let mut object = serializer.serialize_struct("Task", 6)?;
        object.serialize_field("id", id)?;
        object.serialize_field("contextId", context_id)?;
        object.serialize_field("status", status)?;
        if self.include_artifacts {
            object.serialize_field("artifacts", artifacts)?;
        }
        if !history.is_empty() {
            object.serialize_field("history", history)?;
        }
        if let Some(metadata) = metadata {
            object.serialize_field("metadata", metadata)?;
        }
        object.end()
    }
}

/// Appends a value as JSON. Our types have string keys only, so the fallback is never written.
pub(crate) fn append<T: Serialize + ?Sized>(bytes: &mut Vec<u8>, value: &T) {
    let start = bytes.len();
    if serde_json::to_writer(&mut *bytes, value).is_err() {
        bytes.truncate(start);
        bytes.extend_from_slice(b"null");
    }
}

pub(crate) fn to_bytes<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    append(&mut bytes, value);
    bytes
}

fn wrapped(binding: Binding, member: &str, inner: Vec<u8>) -> Vec<u8> {
    match binding {
        Binding::Rpc => inner,
        Binding::Rest => in_member(member, &inner),
    }
}

fn in_member(member: &str, inner: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(inner.len() + member.len() + 5);
    bytes.extend_from_slice(b"{\"");
    bytes.extend_from_slice(member.as_bytes());
    bytes.extend_from_slice(b"\":");
    bytes.extend_from_slice(inner);
    bytes.push(b'}');
    bytes
}
