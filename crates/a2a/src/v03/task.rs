//! Tasks, their status and their artifacts in v0.3.

use serde::Serialize;

use super::Binding;
use super::message::{self, MessageView};
use super::part::{self, PartView};
use crate::model::STATE_NAMES;
use crate::{Artifact, ArtifactId, ContextId, Metadata, Task, TaskId, TaskState, TaskStatus, Timestamp};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    id: &'a TaskId,
    context_id: &'a ContextId,
    status: StatusView<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts: Option<Vec<ArtifactView<'a>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    history: Vec<MessageView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
}

#[derive(Serialize)]
pub(super) struct StatusView<'a> {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Timestamp>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ArtifactView<'a> {
    artifact_id: &'a ArtifactId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parts: Vec<PartView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    extensions: &'a [String],
}

pub(crate) fn task(binding: Binding, task: &Task) -> TaskView<'_> {
    listed_task(binding, task, !task.artifacts.is_empty())
}

/// A task with or without the `artifacts` key.
pub(crate) fn listed_task(binding: Binding, task: &Task, with_artifacts: bool) -> TaskView<'_> {
    let artifacts = || task.artifacts.iter().map(|of| artifact(binding, of)).collect();
    TaskView {
        kind: binding.kind("task"),
        id: &task.id,
        context_id: &task.context_id,
        status: status(binding, &task.status),
        artifacts: with_artifacts.then(artifacts),
        history: task.history.iter().map(|of| message::message(binding, of)).collect(),
        metadata: task.metadata.as_ref(),
    }
}

pub(super) fn status(binding: Binding, status: &TaskStatus) -> StatusView<'_> {
    StatusView {
        state: state(binding, status.state),
        message: status.message.as_ref().map(|of| message::message(binding, of)),
        timestamp: status.timestamp,
    }
}

pub(crate) fn artifact(binding: Binding, artifact: &Artifact) -> ArtifactView<'_> {
    ArtifactView {
        artifact_id: &artifact.artifact_id,
        name: artifact.name.as_deref(),
        description: artifact.description.as_deref(),
        parts: part::parts(binding, &artifact.parts),
        metadata: artifact.metadata.as_ref(),
        extensions: &artifact.extensions,
    }
}

pub(crate) fn state(binding: Binding, state: TaskState) -> &'static str {
    match (binding, state) {
        (Binding::Rpc, _) => STATE_NAMES.iter().find(|(_, named)| *named == state).map_or("unknown", |(name, _)| name),
        // Two Ls: a v0.3 REST client refuses the v1.0 spelling.
        (Binding::Rest, TaskState::Canceled) => "TASK_STATE_CANCELLED",
        (Binding::Rest, _) => state.as_str(),
    }
}
