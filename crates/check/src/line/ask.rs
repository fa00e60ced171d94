//! How an interface is asked: operations of the protocol, and requests as nobody should write them.

use http::HeaderValue;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde_json::{Value, json};
use switchboard_a2a::{Operation, Request, TaskId, encode_params, encode_rest};
use tokio::time::Instant;

use super::Line;
use crate::answer::Reply;
use crate::question::{Caller, Question};

impl Line {
    pub(crate) async fn get(&self, id: &str) -> Reply {
        let request = Request::Get { id: TaskId::from(id), history_length: None, tenant: self.tenant() };
        let reply = self.call(Operation::GetTask, request).await;
        self.note(&reply);
        reply
    }

    pub(crate) async fn cancel(&self, id: &str) -> Reply {
        let request = Request::Cancel { id: TaskId::from(id), metadata: None, tenant: self.tenant() };
        let reply = self.call(Operation::CancelTask, request).await;
        self.note(&reply);
        reply
    }

    /// What is told of a task that is ours.
    fn note(&self, reply: &Reply) {
        if let Some(task) = reply.result().filter(|task| self.has_ended(task)) {
            self.ledger.ends(task["id"].as_str().unwrap_or_default());
        }
    }

    /// Reads a task that nobody has.
    pub(crate) async fn get_nobodys(&self) -> Reply {
        self.get(TaskId::generate().as_str()).await
    }

    /// Asks for an operation.
    pub(crate) async fn call(&self, operation: Operation, request: Request) -> Reply {
        self.call_as(Caller::Us, operation, request).await
    }

    /// The same by somebody else.
    pub(crate) async fn call_as(&self, caller: Caller, operation: Operation, request: Request) -> Reply {
        self.call_with(operation, request, |question| Question { caller, ..question }).await
    }

    /// The same with a change to what is sent.
    pub(crate) async fn call_with(
        &self,
        operation: Operation,
        request: Request,
        change: impl FnOnce(Question) -> Question,
    ) -> Reply {
        let question = match self.question(operation, &request) {
            Ok((question, _)) => change(question),
            Err(problem) => return Reply { seen: problem, ..Reply::default() },
        };
        let entry = self.ledger.begin(&request);
        let reply = self.ask(&question).await;
        self.ledger.settle(entry, self.became(&reply));
        reply
    }

    /// Asks as it is written.
    pub(crate) async fn ask(&self, question: &Question) -> Reply {
        let began = Instant::now();
        let answer = self.subject.ask(question).await;
        let reply = Reply::read(&self.subject, &self.interface, question, answer);
        // One that never came took all the time there was.
        let took = if reply.status == 0 { began.elapsed() } else { reply.took };
        Reply { took, ..reply }
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
            let body = match params.is_empty() {
                true => json!({ "jsonrpc": "2.0", "id": 1, "method": method }),
                false => {
                    let params: Value = serde_json::from_slice(&params).map_err(|error| error.to_string())?;
                    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
                }
            };
            let mut question = self.bytes(body.to_string().into_bytes());
            if operation.is_streaming() {
                accept_events(&mut question);
            }
            return Ok((question, None));
        }
        let call = encode_rest(dialect, operation, request).map_err(|problem| problem.to_string())?;
        let target = call.target();
        let write = |method, body| {
            let mut question = self.at(method, &target, body);
            if operation.is_streaming() {
                accept_events(&mut question);
            }
            question
        };
        let otherwise = call.otherwise.map(|other| write(other.method, other.body));
        Ok((write(call.method, call.body), otherwise))
    }

    /// A JSON-RPC request with any parameters, in the name of the card's tenant.
    pub(crate) fn rpc(&self, method: &str, mut params: Value) -> Question {
        if let Some(tenant) = self.tenant().filter(|_| self.is_v1()) {
            params["tenant"] = json!(tenant);
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.bytes(body.to_string().into_bytes())
    }

    /// Any bytes, to the address of a JSON-RPC interface.
    pub(crate) fn bytes(&self, body: Vec<u8>) -> Question {
        let mut question = self.at("POST", "", Some(body));
        question.url.clone_from(&self.interface.url);
        question
    }

    /// A REST request, below the address of the card's tenant.
    pub(crate) fn rest(&self, method: &'static str, target: &str, body: Option<Vec<u8>>) -> Question {
        let prefix = match self.tenant() {
            Some(tenant) if self.is_v1() => format!("/{tenant}"),
            None if self.is_v1() => String::new(),
            _ => "/v1".to_owned(),
        };
        self.at(method, &format!("{prefix}{target}"), body)
    }

    /// A REST request; the target is what follows the interface's address.
    fn at(&self, method: &'static str, target: &str, body: Option<Vec<u8>>) -> Question {
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
        let request = Request::Get { id: TaskId::generate(), history_length: None, tenant: self.tenant() };
        self.question(Operation::GetTask, &request).map(|(question, _)| question)
    }
}

fn accept_events(question: &mut Question) {
    question.headers.retain(|(name, _)| name != ACCEPT);
    question.headers.push((ACCEPT, HeaderValue::from_static("text/event-stream, application/json;q=0.9")));
}
