//! Stream updates in v0.3, where flags are always printed and `final` ends the stream.

use serde::Serialize;

use super::Binding;
use super::task::{self, ArtifactView, StatusView};
use crate::{ContextId, Metadata, TaskArtifactUpdate, TaskId, TaskStatusUpdate};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusUpdateView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    task_id: &'a TaskId,
    context_id: &'a ContextId,
    status: StatusView<'a>,
    r#final: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ArtifactUpdateView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    task_id: &'a TaskId,
    context_id: &'a ContextId,
    artifact: ArtifactView<'a>,
    append: bool,
    last_chunk: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
}

pub(crate) fn status_update(binding: Binding, update: &TaskStatusUpdate, is_final: bool) -> StatusUpdateView<'_> {
    StatusUpdateView {
        kind: binding.kind("status-update"),
        task_id: &update.task_id,
        context_id: &update.context_id,
        status: task::status(binding, &update.status),
        r#final: is_final,
        metadata: update.metadata.as_ref(),
    }
}

pub(crate) fn artifact_update(binding: Binding, update: &TaskArtifactUpdate) -> ArtifactUpdateView<'_> {
    ArtifactUpdateView {
        kind: binding.kind("artifact-update"),
        task_id: &update.task_id,
        context_id: &update.context_id,
        artifact: task::artifact(binding, &update.artifact),
        append: update.append,
        last_chunk: update.last_chunk,
        metadata: update.metadata.as_ref(),
    }
}
