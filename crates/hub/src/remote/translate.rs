//! Between the events of a remote task and those of the task here. Ids are ours; an artifact id that an earlier turn has
//! used gets a prefix; what the remote server says under our own metadata keys is dropped, so that it cannot pose as us.

use serde::Serialize;
use switchboard_a2a::{Artifact, ArtifactId, ContextId, Json, Message, Metadata, Part, Task, TaskId, TaskState};
use switchboard_engine::TaskHandle;
use switchboard_engine::reason::{REASON_DETAIL_KEY, REASON_KEY};

use super::saved::Attached;

/// Metadata key that names the remote task: on its first status, and on its last one with its state.
pub const REMOTE_KEY: &str = "switchboard/remote";
/// Metadata key of an artifact that is told whole because part of it was missed.
pub(super) const GAP_KEY: &str = "switchboard/gap";
const OWN_PREFIX: &str = "switchboard/";

/// The remote's metadata without what only this server may say. Its reason stays as a detail.
pub(super) fn metadata(metadata: Option<Metadata>) -> Option<Metadata> {
    let mut metadata = metadata?;
    // The detail says more than the reason: why a delegation was refused, for instance.
    let is_text = |reason: &&Json| reason.as_text().is_some();
    let detail = metadata.get(REASON_DETAIL_KEY).filter(is_text);
    let reason = detail.or_else(|| metadata.get(REASON_KEY).filter(is_text)).cloned();
    metadata.retain(is_not_ours);
    if let Some(reason) = reason {
        metadata.insert(REASON_DETAIL_KEY, reason);
    }
    (!metadata.is_empty()).then_some(metadata)
}

fn is_not_ours(key: &str) -> bool {
    !key.starts_with(OWN_PREFIX)
}

/// The same of parts, which have no reason.
pub(super) fn parts(mut parts: Vec<Part>) -> Vec<Part> {
    for part in &mut parts {
        if let Some(metadata) = &mut part.metadata {
            metadata.retain(is_not_ours);
        }
        part.metadata = part.metadata.take().filter(|metadata| !metadata.is_empty());
    }
    parts
}

/// A message of the remote agent as one of the task here.
pub(super) fn message(message: Message, task: &TaskHandle) -> Message {
    Message {
        context_id: Some(task.context_id().clone()),
        task_id: Some(task.id().clone()),
        metadata: metadata(message.metadata),
        parts: parts(message.parts),
        reference_task_ids: Vec::new(),
        ..message
    }
}

/// An artifact of the remote task as one of the task here.
pub(super) fn artifact(artifact: Artifact, attached: &Attached) -> Artifact {
    let artifact_id = match attached.earlier.contains(&artifact.artifact_id) {
        true => ArtifactId::from(format!("{}{}", prefix(attached), artifact.artifact_id)),
        false => artifact.artifact_id,
    };
    Artifact { artifact_id, metadata: metadata(artifact.metadata), parts: parts(artifact.parts), ..artifact }
}

fn prefix(attached: &Attached) -> String {
    format!("t{}-", attached.since)
}

/// What was told of the remote task: the task here without earlier turns, under the remote's ids.
pub(super) fn told(here: Task, attached: &Attached) -> Task {
    let prefix = prefix(attached);
    let artifacts = here.artifacts.into_iter().filter(|artifact| !attached.earlier.contains(&artifact.artifact_id));
    let artifacts = artifacts.map(|artifact| {
        let renamed = artifact.artifact_id.as_str().strip_prefix(&prefix).map(ArtifactId::from);
        match renamed.filter(|id| attached.earlier.contains(id)) {
            Some(artifact_id) => Artifact { artifact_id, ..artifact },
            None => artifact,
        }
    });
    Task {
        id: attached.task.clone(),
        context_id: attached.context.clone(),
        artifacts: artifacts.collect(),
        status: here.status,
        history: here.history,
        metadata: None,
    }
}

/// What is said of a remote task under [`REMOTE_KEY`].
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Remote<'a> {
    agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<&'a TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<&'a ContextId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
}

/// Names the remote task, with its state if it has ended.
pub(super) fn remote(metadata: &mut Metadata, agent: &str, attached: Option<&Attached>, end: Option<TaskState>) {
    let remote = Remote {
        agent,
        task_id: attached.map(|attached| &attached.task),
        context_id: attached.map(|attached| &attached.context),
        state: end.map(TaskState::as_str),
    };
    if let Ok(remote) = Json::from_serialize(&remote) {
        metadata.insert(REMOTE_KEY, remote);
    }
}

/// Whether a task here names this remote task already.
pub(super) fn names(here: &Task, attached: &Attached) -> bool {
    let remote = here.metadata.as_ref().and_then(|metadata| metadata.get(REMOTE_KEY));
    let remote = remote.and_then(|remote| remote.read::<serde_json::Value>().ok());
    remote.is_some_and(|remote| remote["taskId"].as_str() == Some(attached.task.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchboard_a2a::TaskStatus;

    #[test]
    fn artifact_ids_of_earlier_turns_are_renamed_and_back_and_nothing_is_forged() {
        let attached = Attached {
            turn: 7,
            since: 7,
            task: "there".into(),
            context: "talk".into(),
            url: None,
            spent_ms: 0,
            earlier: vec!["a".into(), "t7-a".into()],
            before: Vec::new(),
            used: None,
            ended: false,
        };
        let named = |id: &str| Artifact { artifact_id: id.into(), ..Artifact::text(id) };
        let ours: Vec<Artifact> = ["a", "b", "t7-a"].map(|id| artifact(named(id), &attached)).into();
        let ids: Vec<&str> = ours.iter().map(|artifact| artifact.artifact_id.as_str()).collect();
        assert_eq!(ids, ["t7-a", "b", "t7-t7-a"]);
        let mut forged = Metadata::default();
        for key in ["switchboard/question", REASON_KEY, "usage"] {
            forged.insert(key, Json::from_serialize("x").unwrap());
        }
        let kept = metadata(Some(forged)).unwrap();
        let keys: Vec<&str> = kept.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["usage", REASON_DETAIL_KEY]);
        let mut refused = Metadata::default();
        for (key, word) in [(REASON_KEY, "rejected"), (REASON_DETAIL_KEY, "delegation_loop")] {
            refused.insert(key, Json::from_serialize(word).unwrap());
        }
        let detail = metadata(Some(refused)).unwrap().get(REASON_DETAIL_KEY).and_then(Json::as_text);
        assert_eq!(detail.as_deref(), Some("delegation_loop"));
        let forging = |keys: &[&str]| {
            let mut metadata = Metadata::default();
            for key in keys {
                metadata.insert(*key, Json::from_serialize("x").unwrap());
            }
            Part { metadata: Some(metadata), ..Part::text("made") }
        };
        let made = parts(vec![forging(&["switchboard/question", "usage"]), forging(&["switchboard/usage"])]);
        let keys: Vec<&str> = made[0].metadata.as_ref().unwrap().iter().map(|(key, _)| key).collect();
        assert_eq!((keys, &made[1].metadata), (vec!["usage"], &None), "{made:?}");
        let whole = Artifact { parts: vec![forging(&["switchboard/question"])], ..named("b") };
        assert_eq!(artifact(whole, &attached).parts[0].metadata, None);
        // An earlier turn's artifact of the same name as a renamed one is that turn's.
        let status = TaskStatus { state: TaskState::Working, message: None, timestamp: None };
        let artifacts = vec![named("a"), named("b"), named("t7-t7-a")];
        let here =
            Task { id: "ours".into(), context_id: "c".into(), status, artifacts, history: Vec::new(), metadata: None };
        let told = told(here, &attached);
        let ids: Vec<&str> = told.artifacts.iter().map(|artifact| artifact.artifact_id.as_str()).collect();
        assert_eq!((told.id.as_str(), ids), ("there", vec!["b", "t7-a"]));
    }
}
