//! Messages in v0.3: `parts` on JSON-RPC, `content` on REST, where referenced tasks have no place.

use serde::Serialize;

use super::Binding;
use super::part::{self, PartView};
use crate::{ContextId, Message, MessageId, Metadata, Role, TaskId};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    message_id: &'a MessageId,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<&'a ContextId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<&'a TaskId>,
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<PartView<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Vec<PartView<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    extensions: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    reference_task_ids: &'a [TaskId],
}

pub(crate) fn message(binding: Binding, message: &Message) -> MessageView<'_> {
    let parts = part::parts(binding, &message.parts);
    let (parts, content) = match binding {
        Binding::Rpc => (Some(parts), None),
        Binding::Rest => (None, Some(parts)),
    };
    MessageView {
        kind: binding.kind("message"),
        message_id: &message.message_id,
        context_id: message.context_id.as_ref(),
        task_id: message.task_id.as_ref(),
        role: role(binding, message.role),
        parts,
        content,
        metadata: message.metadata.as_ref(),
        extensions: &message.extensions,
        reference_task_ids: match binding {
            Binding::Rpc => &message.reference_task_ids,
            Binding::Rest => &[],
        },
    }
}

/// v0.3 knows two roles: whoever is not the user is the agent.
fn role(binding: Binding, role: Role) -> &'static str {
    match (binding, role) {
        (Binding::Rpc, Role::User) => "user",
        (Binding::Rpc, Role::Agent | Role::Unspecified) => "agent",
        (Binding::Rest, Role::User) => "ROLE_USER",
        (Binding::Rest, Role::Agent | Role::Unspecified) => "ROLE_AGENT",
    }
}
