//! Converts errors of the kernel into errors of the protocol.

use switchboard_a2a::{Error, ErrorKind};
use switchboard_engine::{Error as Refusal, RefusalKind, state_label};

use super::truncate;

/// The protocol's error for a kernel's.
pub fn from_engine(refusal: Refusal) -> Error {
    let message = refusal.to_string();
    match refusal {
        Refusal::TaskNotFound(id) => Error::task_not_found(truncate::name(id.as_str())),
        Refusal::WebhookNotFound { task, .. } => {
            Error::with_message(ErrorKind::TaskNotFound, message).detail("taskId", truncate::name(task.as_str()))
        }
        Refusal::NotCancelable { id, state } => {
            let error = Error::with_message(ErrorKind::TaskNotCancelable, message);
            error.detail("taskId", id).detail("state", state_label(state))
        }
        Refusal::QuestionClosed { .. } | Refusal::Unsupported(_) => {
            Error::with_message(ErrorKind::UnsupportedOperation, message)
        }
        Refusal::Invalid { field, problem } => Error::invalid_field(field, problem),
        Refusal::ContentType(_) => Error::with_message(ErrorKind::ContentTypeNotSupported, message),
        Refusal::AgentNotFound { known, .. } => {
            Error::with_message(ErrorKind::AgentNotFound, message).detail("agents", known.join(","))
        }
        Refusal::SkillNotFound { known, .. } => {
            Error::with_message(ErrorKind::AgentNotFound, message).detail("skills", known.join(","))
        }
        Refusal::SkillNotOffered { agent, skill, offered } => {
            let error = Error::with_message(ErrorKind::SkillNotOffered, message).detail("agent", agent);
            error.detail("skill", truncate::name(&skill)).detail("skills", offered.join(","))
        }
        Refusal::CoolingDown { retry_after_ms, .. } => {
            Error::with_message(ErrorKind::Cooldown, message).detail("retryAfterMs", retry_after_ms)
        }
        Refusal::NotReviewer { .. } => Error::with_message(ErrorKind::PermissionDenied, message),
        Refusal::Forbidden(agent) => {
            let error = Error::with_message(ErrorKind::PermissionDenied, message);
            if agent.is_empty() { error } else { error.detail("agent", agent) }
        }
        Refusal::Delegation(refused) => {
            let kind = match refused.kind {
                RefusalKind::NotAllowed => ErrorKind::PermissionDenied,
                _ => ErrorKind::UnsupportedOperation,
            };
            Error::with_message(kind, message).detail("reasonDetail", refused.kind.as_str())
        }
        Refusal::KeyReused | Refusal::MessageIdReused(_) => {
            Error::with_message(ErrorKind::IdempotencyKeyReused, message)
        }
        Refusal::Unavailable { problem, retry_after_ms } => Error::overloaded(problem, retry_after_ms),
    }
}
