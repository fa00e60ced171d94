//! The client as the checks use it, pinned to one interface of the server.

use std::time::Duration;

use anyhow::Context as _;
use switchboard_a2a::{
    Message, Part, Role, SendConfiguration, SendRequest, SendResponse, StreamResponse, Task, TaskState, Version,
};
use switchboard_client::{Binding, CallContext, Client, ClientError, Peer, TaskStream, Update, egress};

/// A client of one interface.
pub(crate) struct Caller {
    /// The interface, as the names of the checks begin.
    pub(crate) name: String,
    pub(crate) binding: Binding,
    pub(crate) version: Version,
    pub(crate) client: Client,
    pub(crate) context: CallContext,
}

impl Caller {
    pub(crate) fn new(address: &str, binding: Binding, version: Version) -> anyhow::Result<Self> {
        let mut peer = Peer::new(address);
        (peer.binding, peer.version) = (Some(binding), Some(version));
        peer.limits.idle = Duration::from_secs(25);
        let name = crate::name(binding, version);
        Ok(Self { name, binding, version, client: Client::new(egress()?, peer)?, context: CallContext::default() })
    }

    /// Sends a text and waits for what comes of it.
    pub(crate) async fn send(&self, text: &str) -> Result<SendResponse, ClientError> {
        self.client.send(&self.context, request(Message::text(Role::User, text))).await
    }

    /// Sends a text with other parts, which must come back in an artifact.
    pub(crate) async fn send_parts(&self, text: &str, parts: &[Part]) -> anyhow::Result<Vec<Part>> {
        let mut message = Message::text(Role::User, text);
        message.parts.extend_from_slice(parts);
        let task = completed(self.client.send(&self.context, request(message)).await?)?;
        let artifact = task.artifacts.into_iter().next().context("there is no artifact")?;
        Ok(artifact.parts)
    }

    /// Begins a task that is at work until it is canceled.
    pub(crate) async fn begin_wait(&self) -> anyhow::Result<Task> {
        let mut request = request(Message::text(Role::User, "wait"));
        request.configuration = Some(SendConfiguration { return_immediately: true, ..SendConfiguration::default() });
        match self.client.send(&self.context, request).await? {
            SendResponse::Task(task) if !task.status.state.is_terminal() && !task.status.state.is_interrupted() => {
                Ok(task)
            }
            outcome => anyhow::bail!("the task should be at work: {outcome:?}"),
        }
    }

    /// A task that has ended well.
    pub(crate) async fn begin_and_end(&self) -> anyhow::Result<Task> {
        completed(self.send("echo done").await?)
    }

    pub(crate) async fn stream(&self, message: Message) -> Result<TaskStream, ClientError> {
        self.client.stream(&self.context, request(message)).await
    }
}

pub(crate) fn request(message: Message) -> SendRequest {
    SendRequest { tenant: None, message, configuration: None, metadata: None }
}

pub(crate) fn completed(outcome: SendResponse) -> anyhow::Result<Task> {
    match outcome {
        SendResponse::Task(task) if task.status.state == TaskState::Completed => Ok(task),
        outcome => anyhow::bail!("the task should be completed: {outcome:?}"),
    }
}

/// Everything a stream tells, and what it comes to. Losing the connection on this machine is a failure.
pub(crate) async fn followed(mut stream: TaskStream) -> anyhow::Result<(Vec<StreamResponse>, SendResponse)> {
    let mut events = Vec::new();
    while let Some(update) = stream.next().await? {
        match update {
            Update::Event(event) => events.push(*event),
            Update::Lost { why, attempt } => anyhow::bail!("the stream was lost for the {attempt}. time: {why}"),
            Update::Gap(gap) => anyhow::bail!(gap),
        }
    }
    let response = stream.response().context("the stream told nothing")?;
    Ok((events, response))
}
