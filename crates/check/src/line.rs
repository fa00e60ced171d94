//! One interface of the agent under examination: how it is asked, and the few tasks that the checks share, so that no more
//! messages are sent than are needed.

mod behind;
mod canceled;
mod hear;
mod left;

use std::sync::Arc;

use http::HeaderValue;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde_json::{Value, json};
use switchboard_a2a::{
    Dialect, Message, MessageId, Operation, Request, Role, SendConfiguration, SendRequest, TaskId, Version,
    encode_params, encode_rest,
};
use switchboard_client::{Binding, Interface};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::answer::Reply;
use crate::subject::{Caller, Question, Subject};
use crate::wire::{self, Sent};

pub(crate) use canceled::Canceled;
pub(crate) use hear::{Ending, Heard, Until};
pub(crate) use left::Left;

/// A task that nobody has.
pub(crate) const NOBODYS: &str = "00000000-0000-4000-8000-000000000000";

/// One interface.
pub(crate) struct Line {
    pub(crate) subject: Arc<Subject>,
    pub(crate) interface: Interface,
    first: OnceCell<First>,
    ended: OnceCell<Option<String>>,
    open: OnceCell<Reply>,
    running: OnceCell<Option<String>>,
    heard: OnceCell<Heard>,
    canceled: OnceCell<Option<Canceled>>,
    left: OnceCell<Option<Left>>,
    behind: OnceCell<Result<Value, &'static str>>,
}

/// What the first message came to.
pub(crate) struct First {
    pub(crate) message_id: String,
    pub(crate) reply: Reply,
    pub(crate) sent: Option<Result<Sent, String>>,
}

impl Line {
    pub(crate) fn new(subject: Arc<Subject>, interface: Interface) -> Self {
        let (first, ended, open, running, heard, canceled, left, behind) = Default::default();
        Self { subject, interface, first, ended, open, running, heard, canceled, left, behind }
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.interface.binding.as_str(), self.interface.version.as_str())
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.interface.dialect()
    }

    pub(crate) fn is_v1(&self) -> bool {
        self.interface.version == Version::V1
    }

    pub(crate) fn is_rpc(&self) -> bool {
        self.interface.binding == Binding::JsonRpc
    }

    /// The first message: sent as callers do it, and waited for.
    pub(crate) async fn first(&self) -> &First {
        let send = async {
            let request = self.message(false);
            let message_id = request.message.message_id.to_string();
            let reply = self.call(Operation::SendMessage, Request::Send(request)).await;
            let sent = reply.result().map(|result| wire::sent(self.dialect(), result));
            First { message_id, reply, sent }
        };
        self.first.get_or_init(|| send).await
    }

    /// The task of the first message.
    pub(crate) async fn first_task(&self) -> Option<&Value> {
        match &self.first().await.sent {
            Some(Ok(Sent::Task(task))) => Some(task),
            _ => None,
        }
    }

    pub(crate) async fn first_id(&self) -> Option<&str> {
        self.first_task().await?["id"].as_str()
    }

    /// A task that has ended: the first one, canceled if need be.
    pub(crate) async fn ended(&self) -> Option<&str> {
        let end = async {
            let task = self.first_task().await?;
            let id = task["id"].as_str()?.to_owned();
            if wire::has_ended(self.dialect(), task) {
                return Some(id);
            }
            // Which cancels this very one.
            self.canceled().await;
            let now = self.get(&id).await;
            now.result().is_some_and(|task| wire::has_ended(self.dialect(), task)).then_some(id)
        };
        self.ended.get_or_init(|| end).await.as_deref()
    }

    /// A message that was not waited for.
    pub(crate) async fn unwaited(&self) -> &Reply {
        self.open.get_or_init(|| self.call(Operation::SendMessage, Request::Send(self.message(true)))).await
    }

    /// Its task.
    pub(crate) async fn open_id(&self) -> Option<String> {
        self.task_id(self.unwaited().await)
    }

    /// A task that has just begun, at work for a while with luck.
    pub(crate) async fn running(&self) -> Option<&str> {
        let begin = async {
            let reply = self.call(Operation::SendMessage, Request::Send(self.message(true))).await;
            self.task_id(&reply)
        };
        self.running.get_or_init(|| begin).await.as_deref()
    }

    pub(crate) fn task_id(&self, reply: &Reply) -> Option<String> {
        match wire::sent(self.dialect(), reply.result()?).ok()? {
            Sent::Task(task) => task["id"].as_str().map(str::to_owned),
            Sent::Message => None,
        }
    }

    /// The stream of a message, heard to its end.
    pub(crate) async fn heard(&self) -> &Heard {
        let request = Request::Send(self.message(false));
        self.heard.get_or_init(|| self.hear(Operation::SendStreamingMessage, request, Until::End)).await
    }

    /// Cancels the tasks of ours that may be left.
    pub(crate) async fn tidy(&self) {
        let open = self.open.get().and_then(|reply| self.task_id(reply));
        let running = self.running.get().cloned().flatten();
        let heard = self.heard.get().and_then(|heard| heard.left_open(self.dialect()));
        let left = self.left.get().and_then(|left| left.as_ref().map(|left| left.id.clone()));
        let behind = self.behind.get().and_then(|behind| behind.as_ref().ok());
        let behind = behind.and_then(|task| task["id"].as_str().map(str::to_owned));
        // Those that have ended say so, and that is all.
        for id in [open, running, heard, left, behind].into_iter().flatten() {
            self.cancel(&id).await;
        }
        if self.first.initialized() {
            self.ended().await;
        }
    }

    /// A message with the text of the user's choice.
    pub(crate) fn message(&self, return_immediately: bool) -> SendRequest {
        let mut message = Message::text(Role::User, self.subject.text.clone());
        message.message_id = MessageId::generate();
        let configuration =
            return_immediately.then(|| SendConfiguration { return_immediately, ..SendConfiguration::default() });
        SendRequest { tenant: self.tenant(), message, configuration, metadata: None }
    }

    pub(crate) fn tenant(&self) -> Option<String> {
        self.interface.tenant.clone()
    }

    pub(crate) async fn get(&self, id: &str) -> Reply {
        let request = Request::Get { id: TaskId::from(id), history_length: None, tenant: self.tenant() };
        self.call(Operation::GetTask, request).await
    }

    pub(crate) async fn cancel(&self, id: &str) -> Reply {
        let request = Request::Cancel { id: TaskId::from(id), metadata: None, tenant: self.tenant() };
        self.call(Operation::CancelTask, request).await
    }

    /// Asks for an operation.
    pub(crate) async fn call(&self, operation: Operation, request: Request) -> Reply {
        match self.question(operation, &request) {
            Ok((question, _)) => self.ask(&question).await,
            Err(problem) => Reply { seen: problem, ..Reply::default() },
        }
    }

    /// The same by somebody else.
    pub(crate) async fn call_as(&self, caller: Caller, operation: Operation, request: Request) -> Reply {
        match self.question(operation, &request) {
            Ok((question, _)) => self.ask(&Question { caller, ..question }).await,
            Err(problem) => Reply { seen: problem, ..Reply::default() },
        }
    }

    /// Asks as it is written.
    pub(crate) async fn ask(&self, question: &Question) -> Reply {
        let began = Instant::now();
        let answer = self.subject.ask(question).await;
        let reply = Reply::read(&self.subject, &self.interface, question, answer);
        Reply { took: began.elapsed(), ..reply }
    }

    /// Writes a request, and the other form it has over REST.
    pub(crate) fn question(
        &self,
        operation: Operation,
        request: &Request,
    ) -> Result<(Question, Option<Question>), String> {
        let dialect = self.dialect();
        if self.is_rpc() {
            let params = encode_params(dialect, operation, request).map_err(|problem| problem.to_string())?;
            let method = operation.method(self.interface.version);
            // What has no parameters has none at all, not empty ones.
            let mut question = match params.is_empty() {
                true => self.bytes(json!({ "jsonrpc": "2.0", "id": 1, "method": method }).to_string().into_bytes()),
                false => self.rpc(method, serde_json::from_slice(&params).map_err(|error| error.to_string())?),
            };
            if operation.is_streaming() {
                accept_events(&mut question);
            }
            return Ok((question, None));
        }
        let call = encode_rest(dialect, operation, request).map_err(|problem| problem.to_string())?;
        let target = call.target();
        let write = |method, body| {
            let mut question = self.rest(method, &target, body);
            if operation.is_streaming() {
                accept_events(&mut question);
            }
            question
        };
        let otherwise = call.otherwise.map(|other| write(other.method, other.body));
        Ok((write(call.method, call.body), otherwise))
    }

    /// A JSON-RPC request.
    pub(crate) fn rpc(&self, method: &str, params: Value) -> Question {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.bytes(body.to_string().into_bytes())
    }

    /// Any bytes, to the address of a JSON-RPC interface.
    pub(crate) fn bytes(&self, body: Vec<u8>) -> Question {
        let mut question = self.rest("POST", "", Some(body));
        question.url.clone_from(&self.interface.url);
        question
    }

    /// A REST request; the target is what follows the interface's address.
    pub(crate) fn rest(&self, method: &'static str, target: &str, body: Option<Vec<u8>>) -> Question {
        let is_a2a = !self.is_rpc() && self.is_v1();
        let media_type = if is_a2a { "application/a2a+json" } else { "application/json" };
        let mut headers = vec![(ACCEPT, HeaderValue::from_static("application/json, application/a2a+json"))];
        if body.is_some() {
            headers.push((CONTENT_TYPE, HeaderValue::from_static(media_type)));
        }
        Question {
            method,
            url: format!("{}{target}", self.interface.url.trim_end_matches('/')),
            version: Some(self.interface.version.as_str()),
            headers,
            body,
            caller: Caller::Us,
            declares: true,
        }
    }

    /// A question about a task that nobody has: harmless, and answered by whoever understands it.
    pub(crate) fn harmless(&self) -> Result<Question, String> {
        let request = Request::Get { id: TaskId::from(NOBODYS), history_length: None, tenant: self.tenant() };
        self.question(Operation::GetTask, &request).map(|(question, _)| question)
    }
}

fn accept_events(question: &mut Question) {
    question.headers.retain(|(name, _)| name != ACCEPT);
    question.headers.push((ACCEPT, HeaderValue::from_static("text/event-stream, application/json;q=0.9")));
}
