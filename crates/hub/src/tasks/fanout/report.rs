//! What a fan-out tells of its children: an artifact for each that has ended, the questions that are open, the end.

use serde::Serialize;
use switchboard_a2a::{Artifact, Json, Message, Metadata, Part, Role, Task, TaskState};
use switchboard_engine::fold::USAGE_KEY;
use switchboard_engine::state_label;

use super::children::{Child, Stage};

/// Metadata key of an artifact's child.
pub(crate) const CHILD_KEY: &str = "switchboard/child";
/// Metadata key of the children of a task.
pub(crate) const CHILDREN_KEY: &str = "switchboard/children";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChildView<'a> {
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
    fn new(child: &'a Child) -> Self {
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

/// That a child waits for an answer, while others work.
pub(crate) fn asks(child: &Child) -> String {
    let question = child.question().map(Message::joined_text).unwrap_or_default();
    let id = child.called().map(|called| called.id().to_string()).unwrap_or_default();
    format!("{} asks, in task {id}: {question}", child.agent)
}

/// The question of a fan-out whose open children all wait: in words, and as data for programs.
pub(crate) fn question(children: &[Child], hint: &str) -> Message {
    let waiting: Vec<&Child> = children.iter().filter(|child| child.question().is_some()).collect();
    let lines: Vec<String> = waiting.iter().map(|child| asks(child)).collect();
    let views: Vec<_> = waiting.iter().map(|child| ChildView::new(child)).collect();
    let mut message = Message::text(Role::Agent, format!("{}{hint}", lines.join("\n")));
    if let Ok(data) = Json::from_serialize(&serde_json::json!({ "children": views })) {
        message.parts.push(Part::data(data));
    }
    message
}

/// How the children have ended, in words.
pub(crate) fn summary(children: &[Child], targets: usize) -> String {
    let states: Vec<String> = children
        .iter()
        .map(|child| format!("{} {}", child.agent, child.ended().map_or("canceled", state_label)))
        .collect();
    let completed = children.iter().filter(|child| child.ended() == Some(TaskState::Completed)).count();
    format!("{completed} of {targets} completed: {}", states.join(", "))
}
