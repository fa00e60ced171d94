//! The calls that clients make, as JSON-RPC v1.0, and what their answers say.

use std::io;

use serde_json::{Value, json};

use crate::event_stream::{EventStream, Frame};
use crate::http::Connection;

/// The agent that does what its text says.
pub const PROBE: &str = "/a2a/probe";
/// The agent that says back what it is told.
pub const ECHO: &str = "/a2a/echo";

/// A message to send, kept whole so that it can be sent again byte for byte.
#[derive(Clone, Debug)]
pub struct Send {
    /// Where to.
    pub path: &'static str,
    /// The JSON-RPC parameters.
    pub params: Value,
    /// The idempotency key.
    pub key: Option<String>,
}

/// What a task looks like to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFacts {
    /// Its id.
    pub id: String,
    /// `TASK_STATE_…`
    pub state: String,
    /// All text of all artifacts, and of the status message.
    pub text: String,
    /// The ids of the caller's own messages, in order.
    pub messages: Vec<String>,
}

/// An answer to a sent message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A task.
    Task(TaskFacts),
    /// A direct reply: its message id.
    Message(String),
    /// An error.
    Refused(Refusal),
}

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: i64,
    /// The message.
    pub message: String,
    /// `retryAfterMs`, where it says so.
    pub retry_after_ms: Option<String>,
}

impl Refusal {
    /// Whether it is the typed error that asks for another try.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        let wait = self.retry_after_ms.as_deref().and_then(|wait| wait.parse::<u64>().ok());
        self.code == -32603 && wait.is_some()
    }
}

impl Answer {
    /// Whether it is the typed error that asks for another try.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.is_retryable())
    }
}

impl TaskFacts {
    /// Reads a v1.0 task.
    #[must_use]
    pub fn read(task: &Value) -> Self {
        let status = &task["status"];
        let artifacts = task["artifacts"].as_array().map_or(&[][..], Vec::as_slice);
        // The final message repeats the answer where there is one.
        let holders = if artifacts.is_empty() { std::slice::from_ref(&status["message"]) } else { artifacts };
        let parts = holders.iter().filter_map(|holder| holder["parts"].as_array());
        let text = parts.flatten().filter_map(|part| part["text"].as_str()).collect();
        let history = task["history"].as_array().into_iter().flatten();
        let own = history.filter(|message| message["role"] == "ROLE_USER");
        Self {
            messages: own.filter_map(|message| Some(message["messageId"].as_str()?.to_owned())).collect(),
            id: task["id"].as_str().unwrap_or_default().to_owned(),
            state: status["state"].as_str().unwrap_or_default().to_owned(),
            text,
        }
    }

    /// Whether nothing may follow.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        is_terminal(&self.state)
    }
}

/// Whether nothing may follow this state.
#[must_use]
pub fn is_terminal(state: &str) -> bool {
    ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].iter().any(|name| state.strip_prefix("TASK_STATE_") == Some(name))
}

impl Send {
    /// A message with a text. `message_id` must be new.
    #[must_use]
    pub fn text(path: &'static str, message_id: &str, text: &str) -> Self {
        let message = json!({ "messageId": message_id, "role": "ROLE_USER", "parts": [{ "text": text }] });
        Self { path, params: json!({ "message": message }), key: None }
    }

    /// In a conversation of its own.
    #[must_use]
    pub fn in_context(mut self, context: &str) -> Self {
        self.params["message"]["contextId"] = context.into();
        self
    }

    /// To a task that exists.
    #[must_use]
    pub fn to_task(mut self, task: &str) -> Self {
        self.params["message"]["taskId"] = task.into();
        self
    }

    /// Answered as soon as the task exists.
    #[must_use]
    pub fn immediately(mut self) -> Self {
        self.params["configuration"] = json!({ "returnImmediately": true });
        self
    }

    /// With an idempotency key.
    #[must_use]
    pub fn keyed(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// The conversation it names.
    #[must_use]
    pub fn context(&self) -> Option<&str> {
        self.params["message"]["contextId"].as_str()
    }

    /// Whether it is to a task that exists.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        self.params["message"]["taskId"].is_string()
    }

    /// The id of its message.
    #[must_use]
    pub fn message_id(&self) -> &str {
        self.params["message"]["messageId"].as_str().unwrap_or_default()
    }

    fn headers(&self) -> Vec<(&str, &str)> {
        let key = self.key.as_deref().map(|key| ("idempotency-key", key));
        [("a2a-version", "1.0")].into_iter().chain(key).collect()
    }

    /// Sends it and waits for the answer.
    pub fn call(&self, connection: &mut Connection) -> io::Result<Answer> {
        let body = request("SendMessage", &self.params);
        let response = connection.send("POST", self.path, &self.headers(), &body)?;
        let answer = parse(&response.text()?)?;
        if let Some(refusal) = refusal(&answer) {
            return Ok(Answer::Refused(refusal));
        }
        let result = &answer["result"];
        Ok(match result.get("task") {
            Some(task) => Answer::Task(TaskFacts::read(task)),
            None => Answer::Message(result["message"]["messageId"].as_str().unwrap_or_default().to_owned()),
        })
    }

    /// Sends it and hands over each frame as it comes.
    pub fn stream(&self, connection: &mut Connection, mut seen: impl FnMut(Frame)) -> io::Result<Option<Refusal>> {
        let all = |frame| {
            seen(frame);
            true
        };
        stream(connection, self.path, "SendStreamingMessage", &self.params, &self.headers(), all)
    }
}

/// Reads one task.
pub fn get(connection: &mut Connection, path: &str, id: &str) -> io::Result<Result<TaskFacts, Refusal>> {
    let answer = call(connection, path, "GetTask", &json!({ "id": id }))?;
    Ok(answer.map(|result| TaskFacts::read(&result)))
}

/// Stops a task.
pub fn cancel(connection: &mut Connection, path: &str, id: &str) -> io::Result<Result<TaskFacts, Refusal>> {
    let answer = call(connection, path, "CancelTask", &json!({ "id": id }))?;
    Ok(answer.map(|result| TaskFacts::read(&result)))
}

/// All of the caller's tasks that match, with their first message's text.
pub fn list(connection: &mut Connection, filter: &Value) -> io::Result<Vec<(TaskFacts, String)>> {
    let mut found = Vec::new();
    list_whole(connection, "/a2a", filter, |task| {
        let text = task["history"][0]["parts"][0]["text"].as_str().unwrap_or_default();
        found.push((TaskFacts::read(task), text.to_owned()));
    })?;
    Ok(found)
}

/// All of the caller's tasks that match, as they are sent: those of one agent, or of all of them.
pub fn list_whole(
    connection: &mut Connection,
    path: &str,
    filter: &Value,
    mut seen: impl FnMut(&Value),
) -> io::Result<()> {
    let mut params = filter.clone();
    params["pageSize"] = 100.into();
    loop {
        let page = call(connection, path, "ListTasks", &params)?;
        let page = page.map_err(|refusal| io::Error::other(format!("ListTasks: {refusal:?}")))?;
        page["tasks"].as_array().into_iter().flatten().for_each(&mut seen);
        match page["nextPageToken"].as_str() {
            Some(token) if !token.is_empty() => params["pageToken"] = token.into(),
            _ => return Ok(()),
        }
    }
}

/// Watches a task after a cursor, or from now on, until `seen` has seen enough or the stream ends. After the former
/// the connection is of no more use.
pub fn subscribe(
    connection: &mut Connection,
    path: &str,
    id: &str,
    after: Option<&str>,
    seen: impl FnMut(Frame) -> bool,
) -> io::Result<Option<Refusal>> {
    let mut headers = vec![("a2a-version", "1.0")];
    headers.extend(after.map(|cursor| ("last-event-id", cursor)));
    stream(connection, path, "SubscribeToTask", &json!({ "id": id }), &headers, seen)
}

fn call(connection: &mut Connection, path: &str, method: &str, params: &Value) -> io::Result<Result<Value, Refusal>> {
    rpc(connection, path, "1.0", method, params)
}

/// Any call in any version: its result.
pub fn rpc(
    connection: &mut Connection,
    path: &str,
    version: &str,
    method: &str,
    params: &Value,
) -> io::Result<Result<Value, Refusal>> {
    let body = request(method, params);
    let response = connection.send("POST", path, &[("a2a-version", version)], &body)?;
    let mut answer = parse(&response.text()?)?;
    Ok(match refusal(&answer) {
        Some(refusal) => Err(refusal),
        None => Ok(answer["result"].take()),
    })
}

/// Any call that is answered with a stream, until `seen` has seen enough or the stream ends.
pub fn stream(
    connection: &mut Connection,
    path: &str,
    method: &str,
    params: &Value,
    headers: &[(&str, &str)],
    mut seen: impl FnMut(Frame) -> bool,
) -> io::Result<Option<Refusal>> {
    let body = request(method, params);
    let response = connection.send("POST", path, headers, &body)?;
    if response.header("content-type") != Some("text/event-stream") {
        let answer = parse(&response.text()?)?;
        return refusal(&answer).map_or_else(|| Err(io::Error::other(answer.to_string())), |refusal| Ok(Some(refusal)));
    }
    let mut frames = EventStream::new(response.body);
    while let Some(frame) = frames.next_frame()? {
        if let Some(refusal) = refusal(&parse(&frame.data)?) {
            return Ok(Some(refusal));
        }
        if !seen(frame) {
            break;
        }
    }
    Ok(None)
}

fn request(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

fn parse(text: &str) -> io::Result<Value> {
    serde_json::from_str(text).map_err(|error| io::Error::other(format!("{error} in {text:?}")))
}

fn refusal(answer: &Value) -> Option<Refusal> {
    let error = answer.get("error")?;
    let details = error["data"].as_array().into_iter().flatten();
    let waits = details.filter_map(|detail| detail["metadata"]["retryAfterMs"].as_str());
    Some(Refusal {
        code: error["code"].as_i64().unwrap_or_default(),
        message: error["message"].as_str().unwrap_or_default().to_owned(),
        retry_after_ms: waits.map(str::to_owned).next(),
    })
}
