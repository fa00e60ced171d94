//! The caller of an agent.

use std::time::Instant;

use anyhow::Context as _;
use serde_json::Value;
use switchboard_a2a::{
    ContextId, Json, Message, Part, PartContent, Role, SendConfiguration, SendRequest, SendResponse, StreamResponse,
    Task, TaskId, TaskState, Version,
};
use switchboard_client::{Binding, CallContext, Client, Peer, Update, egress};

use crate::fixture::HANG_GUARD;

/// A client in one version of the protocol.
pub(crate) struct Caller {
    client: Client,
    context: CallContext,
}

/// What was told of a task, and when.
pub(crate) type Told = Vec<(Instant, StreamResponse)>;

impl Caller {
    pub(crate) fn new(address: &str, agent: &str, version: Version) -> anyhow::Result<Self> {
        let mut peer = Peer::new(format!("{address}/a2a/{agent}"));
        (peer.binding, peer.version) = (Some(Binding::JsonRpc), Some(version));
        peer.limits.idle = HANG_GUARD;
        Ok(Self { client: Client::new(egress()?, peer)?, context: CallContext::default() })
    }

    /// Sends a message and waits until its task ends or asks.
    pub(crate) async fn send(&self, message: Message) -> anyhow::Result<Task> {
        self.follow(message).await.map(|(task, _)| task)
    }

    /// The same, with everything that was told on the way.
    pub(crate) async fn follow(&self, message: Message) -> anyhow::Result<(Task, Told)> {
        let mut followed = self.client.stream(&self.context, request(message)).await?;
        let mut told = Vec::new();
        while let Some(update) = followed.next().await? {
            match update {
                Update::Event(event) => told.push((Instant::now(), *event)),
                Update::Lost { why, .. } => anyhow::bail!("the stream was lost: {why}"),
                Update::Gap(gap) => anyhow::bail!(gap),
            }
        }
        match followed.response().context("the stream told nothing")? {
            SendResponse::Task(task) => Ok((task, told)),
            SendResponse::Message(message) => anyhow::bail!("a message instead of a task: {message:?}"),
        }
    }

    /// Sends a message and does not wait for what comes of it.
    pub(crate) async fn begin(&self, message: Message) -> anyhow::Result<Task> {
        let mut request = request(message);
        request.configuration = Some(SendConfiguration { return_immediately: true, ..SendConfiguration::default() });
        match self.client.send(&self.context, request).await? {
            SendResponse::Task(task) => Ok(task),
            SendResponse::Message(message) => anyhow::bail!("a message instead of a task: {message:?}"),
        }
    }

    /// Waits until a task ends or asks.
    pub(crate) async fn settled(&self, id: &TaskId) -> anyhow::Result<Task> {
        let followed = self.client.subscribe(&self.context, id.clone()).await?;
        match followed.finish().await? {
            SendResponse::Task(task) => Ok(task),
            SendResponse::Message(message) => anyhow::bail!("a message instead of a task: {message:?}"),
        }
    }

    pub(crate) async fn cancel(&self, id: &TaskId) -> anyhow::Result<Task> {
        Ok(self.client.cancel(&self.context, id, None).await?)
    }
}

fn request(message: Message) -> SendRequest {
    SendRequest { tenant: None, message, configuration: None, metadata: None }
}

pub(crate) fn text(text: &str) -> Message {
    Message::text(Role::User, text)
}

/// A further message of a conversation.
pub(crate) fn within(context: &ContextId, text: &str) -> Message {
    Message { context_id: Some(context.clone()), ..self::text(text) }
}

/// An answer to what a task asks, in words.
pub(crate) fn answer(task: &Task, words: &str) -> Message {
    Message { task_id: Some(task.id.clone()), context_id: Some(task.context_id.clone()), ..text(words) }
}

/// An answer to what a task asks, as data.
pub(crate) fn answer_with(task: &Task, data: &Value) -> anyhow::Result<Message> {
    Ok(Message { parts: vec![Part::data(Json::from_serialize(data)?)], ..answer(task, "") })
}

/// What a task's status says.
pub(crate) fn said(task: &Task) -> String {
    task.status.message.as_ref().map(Message::joined_text).unwrap_or_default()
}

/// An error unless the task is in this state.
pub(crate) fn is(task: &Task, state: TaskState) -> anyhow::Result<()> {
    anyhow::ensure!(
        task.status.state == state,
        "expected {state:?}, but it is {:?}: {}",
        task.status.state,
        said(task)
    );
    Ok(())
}

/// An error unless the task is done and its answer has this in it.
pub(crate) fn has_answered(task: &Task, part: &str) -> anyhow::Result<()> {
    is(task, TaskState::Completed)?;
    anyhow::ensure!(said(task).contains(part), "it did not answer {part:?} but {:?}", said(task));
    Ok(())
}

/// An error unless the task has failed with this reason; what it says.
pub(crate) fn has_failed(task: &Task, reason: &str) -> anyhow::Result<String> {
    has_failed_as(task, TaskState::Failed, reason)
}

/// The same for a task that has come to no good in another state.
pub(crate) fn has_failed_as(task: &Task, state: TaskState, reason: &str) -> anyhow::Result<String> {
    is(task, state)?;
    let told = metadata(task, "switchboard/reason").context("it has no reason")?;
    anyhow::ensure!(told == reason, "the reason should be {reason} and is {told}: {}", said(task));
    Ok(said(task))
}

/// What is in the metadata of a task as text.
pub(crate) fn metadata(task: &Task, key: &str) -> Option<String> {
    task.metadata.as_ref()?.get(key).and_then(Json::as_text).map(|text| text.to_string())
}

/// What a task asks: the data part of its question.
pub(crate) fn question(task: &Task) -> anyhow::Result<Value> {
    is(task, TaskState::InputRequired)?;
    let message = task.status.message.as_ref().context("it asks without a message")?;
    data(&message.parts).context("the question has no data part")
}

/// What is in an artifact as data.
pub(crate) fn artifact_data(task: &Task, id: &str) -> anyhow::Result<Value> {
    let artifact = task.artifacts.iter().find(|artifact| artifact.artifact_id.as_str() == id);
    let artifact = artifact.with_context(|| format!("there is no artifact {id}"))?;
    data(&artifact.parts).with_context(|| format!("the artifact {id} has no data"))
}

fn data(parts: &[Part]) -> Option<Value> {
    parts.iter().find_map(|part| match &part.content {
        PartContent::Data(json) => json.read().ok(),
        _ => None,
    })
}

/// What is in an artifact as text.
pub(crate) fn artifact_text(task: &Task, id: &str) -> anyhow::Result<String> {
    let artifact = task.artifacts.iter().find(|artifact| artifact.artifact_id.as_str() == id);
    let artifact = artifact.with_context(|| format!("there is no artifact {id}"))?;
    let texts = artifact.parts.iter().filter_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    Ok(texts.collect())
}
