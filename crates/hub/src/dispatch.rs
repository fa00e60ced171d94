//! Dispatch: a message that comes over the hub's own API is sent to the root address like one that comes over A2A, and is
//! routed by the same rules.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use switchboard_a2a::{ContextId, Json, Message, MessageId, Metadata, Part, Role, Task, TaskId, TaskState};
use switchboard_engine::store::lineage::Via;
use switchboard_engine::{
    Address, AgentName, Caller, Error, IncomingMessage, SendResult, Submitted, TraceContext, sha256,
};
use switchboard_server::{drop_own_metadata, trace_headers};

use crate::hub::HubState;

/// A message and who should serve it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dispatch {
    pub(crate) parts: Vec<Part>,
    pub(crate) hints: DispatchHints,
    pub(crate) context: Option<ContextId>,
    /// The task that it goes on with.
    pub(crate) task: Option<TaskId>,
    /// The agent that such a task has to be of.
    pub(crate) agent: Option<AgentName>,
    /// The message's own.
    pub(crate) metadata: Option<Metadata>,
    /// Makes a repeated request safe.
    pub(crate) key: Option<String>,
    /// What has to be the same in a repetition beside the message; the hints if absent.
    pub(crate) request: Option<String>,
    pub(crate) trace: Option<Arc<TraceContext>>,
    /// How long the caller waits for the task to stop; not at all if absent.
    pub(crate) wait: Option<Duration>,
}

/// What the caller says about who should serve it. It is the request's metadata, not the message's: a remote agent must
/// not route by it once more.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DispatchHints {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) skill: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) targets: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fanout: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) force: bool,
    /// The agent that asks, as earlier hubs have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dispatcher_agent: Option<String>,
    /// The project that it is about, as earlier hubs have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) project_slug: Option<String>,
}

/// A message that was accepted.
pub(crate) struct Dispatched {
    pub(crate) task: TaskId,
    pub(crate) context: ContextId,
    pub(crate) agent: Option<AgentName>,
    pub(crate) result: DispatchResult,
}

/// How far it has come.
pub(crate) enum DispatchResult {
    /// The task has ended, or asks something.
    Stopped(Box<Task>),
    /// The agent has answered with a message; there is no task to read.
    Replied(Box<Message>),
    /// The task goes on.
    Pending(TaskState),
}

/// Sends a message, and waits as long as its sender wants to.
pub(crate) async fn dispatch(hub: &HubState, caller: &Caller, dispatch: Dispatch) -> Result<Dispatched, Error> {
    let (wait, expected) = (dispatch.wait, dispatch.agent.clone().filter(|_| dispatch.task.is_some()));
    let routed = hub.engine.route(caller, incoming(dispatch)).await?;
    let agent = routed.hosted().map(|hosted| &hosted.name);
    if let (Some(expected), Some(agent)) = (expected, agent)
        && expected != *agent
    {
        let problem = format!("names a task of agent {agent}, not of {expected}: ask that agent");
        return Err(Error::Invalid { field: "taskId", problem });
    }
    let submitted = hub.engine.send(routed.via(Via::Api)).await?;
    let result = match wait {
        Some(wait) => wait_for(hub, &submitted, wait).await?,
        None => None,
    };
    let result = match result {
        Some(result) => result,
        None => DispatchResult::Pending(state_now(hub, caller, submitted.id()).await),
    };
    Ok(Dispatched {
        task: submitted.id().clone(),
        context: submitted.context().clone(),
        agent: submitted.hosted().map(|hosted| hosted.name.clone()),
        result,
    })
}

fn incoming(dispatch: Dispatch) -> IncomingMessage {
    let hints = Json::from_serialize(&dispatch.hints).ok();
    let mut metadata: Option<Metadata> = hints.as_ref().and_then(|hints| hints.read().ok());
    let mut message = Message {
        message_id: message_id(
            dispatch.key.as_deref(),
            dispatch.request.as_deref().or(hints.as_ref().map(Json::as_str)),
        ),
        context_id: dispatch.context,
        task_id: dispatch.task,
        role: Role::User,
        parts: dispatch.parts,
        metadata: dispatch.metadata,
        extensions: Vec::new(),
        reference_task_ids: Vec::new(),
    };
    drop_own_metadata(&mut message, &mut metadata);
    let mut incoming = IncomingMessage {
        address: Address::Root,
        message,
        accepted_output_modes: Vec::new(),
        metadata: metadata.filter(|metadata| !metadata.is_empty()),
        idempotency_key: dispatch.key,
        trace: dispatch.trace,
        push_config: None,
        webhook: None,
        return_immediately: dispatch.wait.is_none(),
        streaming: false,
    };
    trace_headers::add_from_metadata(&mut incoming);
    incoming
}

/// The id of a message. A request that is repeated makes the same message, and one that only has other hints under the same
/// key does not pass for a repetition.
pub(crate) fn message_id(key: Option<&str>, hints: Option<&str>) -> MessageId {
    let Some(key) = key else { return MessageId::generate() };
    let hints = hints.unwrap_or_default();
    let digest = sha256([b"dispatch:".as_slice(), &key.len().to_be_bytes(), key.as_bytes(), hints.as_bytes()]);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    MessageId::from(uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string())
}

/// What came within a time; nothing if the task goes on.
async fn wait_for(hub: &HubState, submitted: &Submitted, wait: Duration) -> Result<Option<DispatchResult>, Error> {
    let answer = tokio::select! {
        // A result in time counts even if the time is over in the same moment.
        biased;
        answer = submitted.answer() => answer,
        () = hub.parts.clock.sleep(wait) => return Ok(None),
    };
    Ok(match answer {
        SendResult::Message(message) => Some(DispatchResult::Replied(Box::new(message))),
        SendResult::Task(reading) => {
            let task = Box::new(reading.into_task()?);
            let state = task.status.state;
            (state.is_terminal() || state.is_interrupted()).then_some(DispatchResult::Stopped(task))
        }
    })
}

/// The state of a task that goes on. One whose agent has not yet said whether it answers with a task cannot be read.
async fn state_now(hub: &HubState, caller: &Caller, id: &TaskId) -> TaskState {
    let reading = hub.engine.get(&Address::Root, caller, id).await;
    let task = reading.and_then(switchboard_engine::TaskReading::into_task);
    task.map_or(TaskState::Submitted, |task| task.status.state)
}
