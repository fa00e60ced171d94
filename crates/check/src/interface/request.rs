//! Requests to an interface: operations of the protocol, and requests that are invalid on purpose.

use http::HeaderValue;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde_json::{Value, json};
use switchboard_a2a::{Operation, PushRequest, Request, TaskId, encode_params, encode_rest};
use tokio::time::Instant;

use super::TestedInterface;
use crate::reply::Reply;
use crate::request::{Caller, TestRequest};

impl TestedInterface {
    pub(crate) async fn get(&self, id: &str) -> Reply {
        self.call_and_note(Operation::GetTask, self.get_request(id)).await
    }

    pub(crate) async fn cancel(&self, id: &str) -> Reply {
        self.call_and_note(Operation::CancelTask, self.cancel_request(id)).await
    }

    /// Notes when a task of ours has ended.
    async fn call_and_note(&self, operation: Operation, request: Request) -> Reply {
        let reply = self.call(operation, request).await;
        if let Some(task) = reply.result().filter(|task| self.has_ended(task)) {
            self.sent_messages.ends(task["id"].as_str().unwrap_or_default());
        }
        reply
    }

    pub(crate) fn get_request(&self, id: impl Into<TaskId>) -> Request {
        Request::Get { id: id.into(), history_length: None, tenant: self.tenant() }
    }

    pub(crate) fn cancel_request(&self, id: impl Into<TaskId>) -> Request {
        Request::Cancel { id: id.into(), metadata: None, tenant: self.tenant() }
    }

    pub(crate) fn subscribe_request(&self, id: impl Into<TaskId>) -> Request {
        Request::Subscribe { id: id.into(), tenant: self.tenant() }
    }

    pub(crate) fn list_webhooks_request(&self, task_id: TaskId) -> Request {
        Request::Push(PushRequest::List { task_id, page_size: None, page_token: None, tenant: self.tenant() })
    }

    /// Reads a task that does not exist.
    pub(crate) async fn get_unknown_task(&self) -> Reply {
        self.get(TaskId::generate().as_str()).await
    }

    pub(crate) async fn call(&self, operation: Operation, request: Request) -> Reply {
        self.call_as(Caller::First, operation, request).await
    }

    /// The same by another caller.
    pub(crate) async fn call_as(&self, caller: Caller, operation: Operation, request: Request) -> Reply {
        self.call_with(operation, request, |test_request| TestRequest { caller, ..test_request }).await
    }

    /// The same with a change to the request.
    pub(crate) async fn call_with(
        &self,
        operation: Operation,
        request: Request,
        change: impl FnOnce(TestRequest) -> TestRequest,
    ) -> Reply {
        let test_request = match self.encode(operation, &request) {
            Ok((test_request, _)) => change(test_request),
            Err(problem) => return Reply { seen: problem, ..Reply::default() },
        };
        let entry = self.sent_messages.begin(&request);
        let reply = self.ask(&test_request).await;
        self.sent_messages.resolve(entry, self.outcome_of(&reply));
        reply
    }

    /// Sends the request as it is.
    pub(crate) async fn ask(&self, test_request: &TestRequest) -> Reply {
        let began = Instant::now();
        let answer = self.agent.ask(test_request).await;
        let reply = Reply::read(&self.agent, &self.endpoint, test_request, answer);
        // A reply that never came took all the time there was.
        let took = if reply.status == 0 { began.elapsed() } else { reply.took };
        Reply { took, ..reply }
    }

    /// Encodes a request, and the alternate form some have over REST.
    pub(crate) fn encode(
        &self,
        operation: Operation,
        request: &Request,
    ) -> Result<(TestRequest, Option<TestRequest>), String> {
        let dialect = self.dialect();
        if self.is_rpc() {
            let params = encode_params(dialect, operation, request).map_err(|problem| problem.to_string())?;
            let method = operation.method(self.endpoint.version);
            let mut body = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
            // Without parameters the member is absent, not empty.
            if !params.is_empty() {
                body["params"] = serde_json::from_slice(&params).map_err(|error| error.to_string())?;
            }
            let mut test_request = self.bytes(body.to_string().into_bytes());
            if operation.is_streaming() {
                accept_events(&mut test_request);
            }
            return Ok((test_request, None));
        }
        let call = encode_rest(dialect, operation, request).map_err(|problem| problem.to_string())?;
        let target = call.target();
        let write = |method, body| {
            let mut test_request = self.at(method, &target, body);
            if operation.is_streaming() {
                accept_events(&mut test_request);
            }
            test_request
        };
        let alternate = call.fallback.map(|other| write(other.method, other.body));
        Ok((write(call.method, call.body), alternate))
    }

    /// A JSON-RPC request with any parameters, in the name of the card's tenant.
    pub(crate) fn rpc(&self, method: &str, mut params: Value) -> TestRequest {
        if let Some(tenant) = self.tenant().filter(|_| self.is_v1()) {
            params["tenant"] = json!(tenant);
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.bytes(body.to_string().into_bytes())
    }

    /// Any bytes, to the address of a JSON-RPC interface.
    pub(crate) fn bytes(&self, body: Vec<u8>) -> TestRequest {
        let mut test_request = self.at("POST", "", Some(body));
        test_request.url.clone_from(&self.endpoint.url);
        test_request
    }

    /// A REST request, below the address of the card's tenant.
    pub(crate) fn rest(&self, method: &'static str, target: &str, body: Option<Vec<u8>>) -> TestRequest {
        let prefix = match self.tenant() {
            Some(tenant) if self.is_v1() => format!("/{tenant}"),
            None if self.is_v1() => String::new(),
            _ => "/v1".to_owned(),
        };
        self.at(method, &format!("{prefix}{target}"), body)
    }

    /// A REST request; the target is what follows the interface's address.
    fn at(&self, method: &'static str, target: &str, body: Option<Vec<u8>>) -> TestRequest {
        let is_a2a = !self.is_rpc() && self.is_v1();
        let media_type = if is_a2a { "application/a2a+json" } else { "application/json" };
        let mut headers = vec![(ACCEPT, HeaderValue::from_static("application/json, application/a2a+json"))];
        if body.is_some() {
            headers.push((CONTENT_TYPE, HeaderValue::from_static(media_type)));
        }
        let url = format!("{}{target}", self.endpoint.url.trim_end_matches('/'));
        TestRequest { method, headers, body, ..TestRequest::get(&url, Some(self.endpoint.version.as_str())) }
    }

    /// GetTask for a task that does not exist: no side effects, and every agent answers it.
    pub(crate) fn harmless_request(&self) -> Result<TestRequest, String> {
        let request = self.get_request(TaskId::generate());
        self.encode(Operation::GetTask, &request).map(|(test_request, _)| test_request)
    }
}

fn accept_events(test_request: &mut TestRequest) {
    test_request.headers.retain(|(name, _)| name != ACCEPT);
    test_request.headers.push((ACCEPT, HeaderValue::from_static("text/event-stream, application/json;q=0.9")));
}
