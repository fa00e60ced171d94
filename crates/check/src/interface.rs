//! One interface of the agent under test, and the few tasks the checks share, so that no more messages are sent than
//! needed.

mod cancellation;
mod cleanup;
mod reconnect;
mod request;
mod stream;
mod unanswered_task;

use std::sync::Arc;

use serde_json::Value;
use switchboard_a2a::{
    Dialect, ErrorKind, Message, MessageId, Operation, Request, Role, SendConfiguration, SendRequest,
};
use switchboard_a2a::{TaskId, Version};
use switchboard_client::{Binding, Interface};

use crate::agent::{DeclaredInterface, TestedAgent};
use crate::push::delivered::{self, Delivery};
use crate::reply::Reply;
use crate::run_once::{RunOnce, TOO_LONG};
use crate::verdict::skip;
use crate::wire::{self, SendResult};

pub(crate) use cancellation::Cancellation;
use cleanup::SentMessages;
pub(crate) use reconnect::Reconnection;
pub(crate) use stream::{ReadUntil, RecordedStream, StreamEnd};

pub(crate) struct TestedInterface {
    pub(crate) agent: Arc<TestedAgent>,
    pub(crate) endpoint: Interface,
    /// Its url on the card, if it is called at another one.
    pub(crate) card_url: Option<String>,
    sent_messages: SentMessages,
    first: RunOnce<FirstSend>,
    ended: RunOnce<Option<String>>,
    non_blocking: RunOnce<Reply>,
    running: RunOnce<Option<String>>,
    recorded: RunOnce<RecordedStream>,
    canceled: RunOnce<Option<Cancellation>>,
    reconnection: RunOnce<Option<Reconnection>>,
    unanswered_task: RunOnce<Result<Value, &'static str>>,
    delivery: RunOnce<Delivery>,
}

/// The first message and its reply.
pub(crate) struct FirstSend {
    pub(crate) message_id: String,
    pub(crate) reply: Reply,
    pub(crate) sent: Option<Result<SendResult, String>>,
}

impl TestedInterface {
    pub(crate) fn new(agent: Arc<TestedAgent>, (endpoint, card_url): DeclaredInterface) -> Self {
        Self {
            agent,
            endpoint,
            card_url,
            sent_messages: SentMessages::default(),
            first: RunOnce::new(|| FirstSend { message_id: String::new(), reply: Reply::abandoned(), sent: None }),
            ended: RunOnce::new(|| None),
            non_blocking: RunOnce::new(Reply::abandoned),
            running: RunOnce::new(|| None),
            recorded: RunOnce::new(RecordedStream::abandoned),
            canceled: RunOnce::new(|| None),
            reconnection: RunOnce::new(|| None),
            unanswered_task: RunOnce::new(|| Err(TOO_LONG)),
            delivery: RunOnce::new(|| skip(TOO_LONG)),
        }
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.endpoint.binding.as_str(), self.endpoint.version.as_str())
    }

    /// What was called, for the report.
    pub(crate) fn describe(&self) -> String {
        let called = format!("{} {}", self.name(), self.endpoint.url);
        match &self.card_url {
            None => called,
            Some(card_url) => format!("{called} (the card says {card_url})"),
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.endpoint.dialect()
    }

    pub(crate) fn is_v1(&self) -> bool {
        self.endpoint.version == Version::V1
    }

    pub(crate) fn is_rpc(&self) -> bool {
        self.endpoint.binding == Binding::JsonRpc
    }

    pub(crate) fn has_ended(&self, task: &Value) -> bool {
        wire::has_ended(self.dialect(), task)
    }

    /// Whether a task is terminal or interrupted.
    pub(crate) fn is_settled(&self, task: &Value) -> bool {
        self.has_ended(task) || wire::is_interrupted(self.dialect(), task)
    }

    /// The first message: a blocking send.
    pub(crate) async fn first(&self) -> &FirstSend {
        let send = || async {
            let request = self.message(false);
            let message_id = request.message.message_id.to_string();
            let reply = self.call(Operation::SendMessage, Request::Send(request)).await;
            let sent = reply.result().map(|result| wire::sent(self.dialect(), result));
            FirstSend { message_id, reply, sent }
        };
        self.first.get(send).await
    }

    pub(crate) async fn first_task(&self) -> Option<&Value> {
        match &self.first().await.sent {
            Some(Ok(SendResult::Task(task))) => Some(task),
            _ => None,
        }
    }

    pub(crate) async fn first_id(&self) -> Option<&str> {
        self.first_task().await?["id"].as_str()
    }

    /// A task that has ended: the first one, canceled if necessary.
    pub(crate) async fn ended(&self) -> Option<&str> {
        let end = || async {
            let task = self.first_task().await?;
            let id = task["id"].as_str()?.to_owned();
            if self.has_ended(task) {
                return Some(id);
            }
            // This cancels the first task.
            self.canceled().await;
            self.has_ended_now(&id).await.then_some(id)
        };
        self.ended.get(end).await.as_deref()
    }

    /// The reply to a non-blocking send.
    pub(crate) async fn non_blocking_reply(&self) -> &Reply {
        self.non_blocking.get(|| self.call(Operation::SendMessage, Request::Send(self.message(true)))).await
    }

    pub(crate) async fn non_blocking_id(&self) -> Option<String> {
        self.task_id(self.non_blocking_reply().await)
    }

    /// A task that has just started and may be running for a while.
    pub(crate) async fn running(&self) -> Option<&str> {
        self.running.get(|| self.start_task()).await.as_deref()
    }

    /// Starts a task with a non-blocking send.
    pub(crate) async fn start_task(&self) -> Option<String> {
        let reply = self.call(Operation::SendMessage, Request::Send(self.message(true))).await;
        self.task_id(&reply)
    }

    pub(crate) fn task_id(&self, reply: &Reply) -> Option<String> {
        match wire::sent(self.dialect(), reply.result()?).ok()? {
            SendResult::Task(task) => task["id"].as_str().map(str::to_owned),
            SendResult::Message(_) => None,
        }
    }

    /// The stream of a message, read to its end.
    pub(crate) async fn recorded_stream(&self) -> &RecordedStream {
        self.recorded.get(|| self.record_message()).await
    }

    pub(crate) async fn delivery(&self) -> &Delivery {
        self.delivery.get(|| delivered::deliver(self)).await
    }

    /// A message with the configured text.
    pub(crate) fn message(&self, return_immediately: bool) -> SendRequest {
        let mut message = Message::text(Role::User, self.agent.text.clone());
        message.message_id = MessageId::generate();
        let configuration =
            return_immediately.then(|| SendConfiguration { return_immediately, ..SendConfiguration::default() });
        SendRequest { tenant: self.tenant(), message, configuration, metadata: None }
    }

    /// The same as a follow-up.
    pub(crate) fn message_to(&self, task: TaskId) -> Request {
        let mut request = self.message(false);
        request.message.task_id = Some(task);
        Request::Send(request)
    }

    pub(crate) fn tenant(&self) -> Option<String> {
        self.endpoint.tenant.clone()
    }

    pub(crate) async fn has_ended_now(&self, id: &str) -> bool {
        self.get(id).await.result().is_some_and(|task| self.has_ended(task))
    }

    /// Whether the agent purges ended tasks: this one is gone, and so is the first one, which was seen to end.
    pub(crate) async fn has_purged(&self, id: &str) -> bool {
        let Some(first) = self.first.known().and_then(|first| match &first.sent {
            Some(Ok(SendResult::Task(task))) if self.has_ended(task) => task["id"].as_str(),
            _ => None,
        }) else {
            return false;
        };
        let is_gone = async |id: &str| self.get(id).await.is_refused_with(ErrorKind::TaskNotFound);
        is_gone(first).await && (first == id || is_gone(id).await)
    }
}
