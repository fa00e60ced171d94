//! The request of a turn to its remote agent. It is the same bytes however often it is made: an agent that recognises a
//! repetition refuses one that differs.

use switchboard_a2a::{
    AuthenticationInfo, ContextId, Json, Message, MessageId, Metadata, PushConfig, Role, SendConfiguration,
    SendRequest, TaskId,
};
use switchboard_client::CallContext;
use switchboard_engine::{Turn, sha256};
use uuid::Uuid;

/// What a request is made of beside the turn.
pub(super) struct Outgoing<'a> {
    /// The task here.
    pub(super) task: &'a TaskId,
    /// The conversation there, if there is one.
    pub(super) context: Option<ContextId>,
    /// The remote task that the message answers.
    pub(super) answers: Option<TaskId>,
    /// The address and the token for push notifications.
    pub(super) callback: Option<(String, String)>,
}

/// The id of a message there: ids of two callers here may be the same.
pub(super) fn message_id(task: &TaskId, turn: u64) -> MessageId {
    let digest = sha256([b"message:".as_slice(), task.as_str().as_bytes(), b":", turn.to_string().as_bytes()]);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    MessageId::from(uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string())
}

/// The idempotency key of a message.
pub(super) fn key(task: &TaskId, turn: u64) -> String {
    format!("{task}:{turn}")
}

/// Tracing and idempotency of a turn's calls.
pub(super) fn call_context(task: &TaskId, turn: &Turn) -> CallContext {
    let trace = turn.trace.as_deref();
    CallContext {
        correlation_id: trace.and_then(|trace| trace.correlation_id.clone()),
        parent_id: Some(task.to_string()),
        traceparent: trace.and_then(|trace| trace.traceparent.as_ref()).map(|trace| trace.as_str().to_owned()),
        idempotency_key: Some(key(task, turn.seq.0)),
        ..CallContext::default()
    }
}

pub(super) fn request(turn: &Turn, to: Outgoing<'_>) -> SendRequest {
    let message = Message {
        message_id: message_id(to.task, turn.seq.0),
        context_id: to.context,
        task_id: to.answers,
        role: Role::User,
        // Tasks of this server mean nothing there.
        reference_task_ids: Vec::new(),
        ..turn.message.clone()
    };
    let push = to.callback.map(|(url, token)| PushConfig {
        tenant: None,
        id: Some("switchboard".to_owned()),
        task_id: None,
        url,
        token: Some(token.clone()),
        authentication: Some(AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: Some(token) }),
        payload: None,
    });
    let configuration = SendConfiguration {
        accepted_output_modes: turn.accepted_output_modes.clone(),
        task_push_notification_config: push,
        history_length: None,
        return_immediately: true,
    };
    let mut metadata = turn.metadata.clone().unwrap_or_default();
    let trace = turn.trace.as_deref();
    let skill = turn.skill().map(str::to_owned);
    add(&mut metadata, "skill", skill.as_deref());
    add(&mut metadata, "skillHint", skill.as_deref());
    add(&mut metadata, "correlationId", trace.and_then(|trace| trace.correlation_id.as_deref()));
    add(&mut metadata, "parentId", Some(to.task.as_str()));
    SendRequest { tenant: None, message, configuration: Some(configuration), metadata: Some(metadata) }
}

fn add(metadata: &mut Metadata, key: &str, value: Option<&str>) {
    if metadata.get(key).is_none()
        && let Some(value) = value.and_then(|value| Json::from_serialize(value).ok())
    {
        metadata.insert(key, value);
    }
}

/// A number between 0.8 and 1.2 that differs between tasks, so that they do not all look at once.
pub(super) fn spread() -> f64 {
    0.8 + 0.4 * f64::from(Uuid::new_v4().as_bytes()[0]) / 255.0
}
