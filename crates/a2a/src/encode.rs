//! Answers as bytes, in each dialect. v1.0 is the model's own JSON; v0.3 goes through the views in `v03`.

use serde::Serialize;

use crate::v03::{ListedTask, StatusUpdate, view};
use crate::write_json::{Object, append, to_bytes};
use crate::{Artifact, Dialect, ListResponse, Message, PushConfig, StreamResponse, Task, TaskStatusUpdate};

/// A bare task, the answer to getting and cancelling one.
pub fn encode_task(dialect: Dialect, task: &Task) -> Vec<u8> {
    to_bytes(&view(dialect, task))
}

/// A bare message.
pub fn encode_message(dialect: Dialect, message: &Message) -> Vec<u8> {
    to_bytes(&view(dialect, message))
}

/// The answer to a sent message that made or continued a task.
pub fn encode_send_task(dialect: Dialect, task: &Task) -> Vec<u8> {
    in_member(dialect, "task", encode_task(dialect, task))
}

/// The answer to a sent message that was replied to directly.
pub fn encode_send_message(dialect: Dialect, message: &Message) -> Vec<u8> {
    in_member(dialect, "message", encode_message(dialect, message))
}

/// One stream frame. `is_final` says that the stream ends here; only v0.3 status updates carry it.
pub fn encode_stream(dialect: Dialect, frame: &StreamResponse, is_final: bool) -> Vec<u8> {
    match frame {
        _ if dialect == Dialect::V1 => to_bytes(frame),
        StreamResponse::Task(task) => encode_send_task(dialect, task),
        StreamResponse::Message(message) => encode_send_message(dialect, message),
        StreamResponse::StatusUpdate(update) => {
            in_member(dialect, "statusUpdate", to_bytes(&view(dialect, &StatusUpdate { update, is_final })))
        }
        StreamResponse::ArtifactUpdate(update) => {
            in_member(dialect, "artifactUpdate", to_bytes(&view(dialect, update)))
        }
    }
}

/// A status update with the complete artifact of the task, as a push notification.
pub fn encode_status_with_artifact(
    dialect: Dialect,
    update: &TaskStatusUpdate,
    is_final: bool,
    artifact: Option<&Artifact>,
) -> Vec<u8> {
    #[derive(Serialize)]
    struct WithArtifact<U, A> {
        #[serde(flatten)]
        update: U,
        #[serde(skip_serializing_if = "Option::is_none")]
        artifact: Option<CompleteArtifact<A>>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct CompleteArtifact<A> {
        #[serde(flatten)]
        artifact: A,
        append: bool,
        last_chunk: bool,
    }
    let update = StatusUpdate { update, is_final };
    let artifact = artifact.map(|of| CompleteArtifact { artifact: view(dialect, of), append: false, last_chunk: true });
    in_member(dialect, "statusUpdate", to_bytes(&WithArtifact { update: view(dialect, &update), artifact }))
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

/// Writes a page of tasks one after the other, so that the caller need not hold all of them at once.
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
        let Self { dialect, include_artifacts, .. } = *self;
        append(&mut self.bytes, &ListedTask { dialect, task, include_artifacts });
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
    to_bytes(&view(dialect, config))
}

/// A task's webhooks: a bare array on v0.3 JSON-RPC, an object elsewhere.
pub fn encode_push_list(dialect: Dialect, configs: &[PushConfig], next_page_token: &str) -> Vec<u8> {
    let configs = view(dialect, configs);
    match dialect {
        Dialect::V03Rpc => to_bytes(&configs),
        _ => Object::default().member("configs", &configs).member("nextPageToken", next_page_token).end(),
    }
}

/// Puts a value under its name, unless v0.3 JSON-RPC tells it by its `kind`.
fn in_member(dialect: Dialect, member: &'static str, inner: Vec<u8>) -> Vec<u8> {
    match dialect {
        Dialect::V03Rpc => inner,
        _ => Object::with_capacity(inner.len() + member.len() + 5).encoded(member, &inner).end(),
    }
}
