//! What a channel's task tells: each answer as an artifact that says where it belongs, and what the agent waits for.

use switchboard_a2a::{Artifact, Json, Message, Metadata, Part, Role};

use super::joined::{CHANNEL_KEY, Origin};
use crate::tasks::child_report;
use crate::tasks::children::Child;

/// An answer, or why there is none, with the place that it goes to.
pub(super) fn answer(number: u64, child: &Child, origin: Option<&Origin>, inline: usize) -> Option<Artifact> {
    let index = usize::try_from(number).unwrap_or(usize::MAX);
    let mut artifact = child_report::artifact(index, child, inline)?;
    if let Some(origin) = origin.and_then(|origin| Json::from_serialize(origin).ok()) {
        artifact.metadata.get_or_insert_default().insert(CHANNEL_KEY, origin);
    }
    Some(artifact)
}

/// What a status says, with the place that it goes to.
pub(super) fn said(parts: Vec<Part>, origin: Option<&Origin>) -> Message {
    Message { parts, metadata: origin.map(Origin::metadata), ..Message::text(Role::Agent, "") }
}

/// Metadata of a status: how the agent's task stands.
pub(super) fn metadata(child: Option<&Child>) -> Option<Metadata> {
    child.and_then(|child| child_report::children_metadata(std::slice::from_ref(child)))
}

/// That the agent waits for what nobody can give in a chat.
pub(super) fn waits_for_approval(child: &Child) -> String {
    let id = child.called().map(|called| called.id().to_string()).unwrap_or_default();
    let question = child.question().map(Message::joined_text).unwrap_or_default();
    format!("{} waits for an approval, which is not given here, in task {id}: {question}", child.agent)
}

/// The question of the agent, as it was asked.
pub(super) fn question(child: &Child, origin: Option<&Origin>) -> Message {
    let asked = child.question();
    let parts = asked.map(|question| question.parts.clone()).filter(|parts| !parts.is_empty());
    said(parts.unwrap_or_else(|| vec![Part::text("")]), origin)
}
