//! What a fan-out tells of its children beside what each has come to: the questions that are open, and the end.

use switchboard_a2a::{Json, Message, Part, Role, TaskState};
use switchboard_engine::state_label;

use crate::tasks::child_report::ChildView;
use crate::tasks::children::Child;

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
