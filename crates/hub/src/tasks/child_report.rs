//! What a task of the hub's own tells of its children: an artifact for each that has ended, and how all of them stand.

use serde::Serialize;
use switchboard_a2a::{Artifact, Json, Message, Metadata, Part, Task};
use switchboard_engine::fold::USAGE_KEY;
use switchboard_engine::state_label;

use super::children::{Child, Stage};

/// Metadata key of an artifact's child.
pub(crate) const CHILD_KEY: &str = "switchboard/child";
/// Metadata key of the children of a task.
pub(crate) const CHILDREN_KEY: &str = "switchboard/children";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChildView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<&'a str>,
    agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<String>,
}

impl<'a> ChildView<'a> {
    pub(crate) fn new(child: &'a Child) -> Self {
        let agent = child.agent.as_str();
        let state = child.ended().map(state_label);
        let (task_id, usage) = match &child.stage {
            Stage::Open { called, .. } => (Some(called.id().as_str()), None),
            Stage::Ended(task) => {
                let usage = task.metadata.as_ref().and_then(|metadata| metadata.get(USAGE_KEY));
                (Some(task.id.as_str()), usage)
            }
            Stage::Refused(_) => (None, None),
        };
        Self { task_id, agent, state, usage, question: child.question().map(Message::joined_text) }
    }
}

/// The artifact of a child that has ended: what it has made, or where that is if it is more than `inline` bytes. Its id is
/// the child's, so that it is told once.
pub(crate) fn artifact(index: usize, child: &Child, inline: usize) -> Option<Artifact> {
    let (id, parts) = match &child.stage {
        Stage::Open { .. } => return None,
        Stage::Refused(problem) => (format!("refused-{index}"), vec![Part::text(problem.clone())]),
        Stage::Ended(task) => (task.id.to_string(), result_parts(task)),
    };
    let bytes = serde_json::to_vec(&parts).map_or(usize::MAX, |json| json.len());
    let parts = match &child.stage {
        Stage::Ended(task) if bytes > inline => {
            vec![Part::text(format!("{} has answered with {bytes} bytes: read task {}", child.agent, task.id))]
        }
        _ => parts,
    };
    let metadata = Json::from_serialize(&ChildView::new(child)).ok().map(|view| {
        let mut metadata = Metadata::default();
        metadata.insert(CHILD_KEY, view);
        metadata
    });
    Some(Artifact { artifact_id: id.as_str().into(), metadata, ..Artifact::new(parts).named(child.agent.as_str()) })
}

/// What a task has made; what it says if it has made nothing.
fn result_parts(task: &Task) -> Vec<Part> {
    let made: Vec<Part> = task.artifacts.iter().flat_map(|artifact| artifact.parts.iter().cloned()).collect();
    let said = || task.status.message.as_ref().map(|message| message.parts.clone()).unwrap_or_default();
    if made.is_empty() { said() } else { made }
}

/// The children as status metadata.
pub(crate) fn children_metadata(children: &[Child]) -> Option<Metadata> {
    let views: Vec<_> = children.iter().map(ChildView::new).collect();
    let mut metadata = Metadata::default();
    metadata.insert(CHILDREN_KEY, Json::from_serialize(&views).ok()?);
    Some(metadata)
}
