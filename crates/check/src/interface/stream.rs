//! Records a stream: its events, how it ended, and how long it was silent.

use std::time::Duration;

use serde_json::Value;
use switchboard_a2a::sse::{Event as SseEvent, EventReader};
use switchboard_a2a::{Dialect, Operation, Request};
use switchboard_egress::{BodyError, ResponseBody};
use tokio::time::Instant;

use super::TestedInterface;
use super::cleanup::SendOutcome;
use crate::agent::{MAX_BODY_BYTES, Opened};
use crate::reply::{RawResponse, Reply, ReplyContent};
use crate::request::TestRequest;
use crate::wire::{self, Event};

/// How long a stream may stay open after the task has ended.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long it is read after an interrupted state: it may stay open then.
const INTERRUPTED_TIMEOUT: Duration = Duration::from_millis(500);
/// The most that is kept of one stream, and the overhead counted for each event.
const MAX_STREAM_BYTES: usize = 24 << 20;
const EVENT_OVERHEAD: usize = 200;

/// When to stop reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadUntil {
    /// At the first event.
    First,
    /// At the end of the stream.
    End,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// There was no stream.
    #[default]
    None,
    /// The agent closed it in order.
    Closed,
    Broken,
    /// We stopped reading: it was enough, or the time was up.
    Abandoned,
}

#[derive(Debug, Default)]
pub(crate) struct RecordedStream {
    /// The reply where there is no stream, or the error event.
    pub(crate) reply: Reply,
    /// The results, without their envelopes.
    pub(crate) events: Vec<Value>,
    /// The SSE id of each of them, where it has one.
    pub(crate) ids: Vec<Option<String>>,
    /// Problems of the envelopes.
    pub(crate) envelopes: Vec<String>,
    pub(crate) end: StreamEnd,
    /// The index of the terminal event.
    pub(crate) terminal_at: Option<usize>,
    /// Whether the last status was an interrupted state.
    pub(crate) is_interrupted: bool,
    /// The task had ended while the stream was read, and no terminal event came.
    pub(crate) missed_terminal: bool,
    /// The longest time without a byte.
    pub(crate) silence: Duration,
    /// Whether an SSE comment came.
    pub(crate) has_keep_alive: bool,
}

impl RecordedStream {
    /// There was no stream, but this reply.
    fn none(reply: Reply) -> Self {
        Self { reply, ..Self::default() }
    }

    pub(super) fn abandoned() -> Self {
        Self::none(Reply::abandoned())
    }

    /// Whether there was a stream at all; one with nothing but an error is none.
    pub(crate) fn is_stream(&self) -> bool {
        self.end != StreamEnd::None
            && (!self.events.is_empty() || !matches!(self.reply.content, ReplyContent::Error(_)))
    }

    pub(crate) fn task_id(&self, dialect: Dialect) -> Option<String> {
        self.events.iter().find_map(|frame| task_of(dialect, frame)).map(str::to_owned)
    }
}

fn task_of(dialect: Dialect, frame: &Value) -> Option<&str> {
    match wire::event(dialect, frame) {
        Event::Task(task) => task["id"].as_str(),
        Event::Status(update) | Event::Artifact(update) => update["taskId"].as_str(),
        Event::Message(_) | Event::Unknown => None,
    }
}

/// The part of an event that holds a status.
fn holder(dialect: Dialect, frame: &Value) -> Option<&Value> {
    match wire::event(dialect, frame) {
        Event::Task(held) | Event::Status(held) => Some(held),
        _ => None,
    }
}

pub(crate) struct OpenStream<'a> {
    interface: &'a TestedInterface,
    /// Its message among the sent ones.
    entry: Option<usize>,
    body: ResponseBody,
    reader: EventReader,
    last_byte: Instant,
    /// How many bytes are kept by now.
    bytes_kept: usize,
    recorded: RecordedStream,
}

impl TestedInterface {
    /// Reads the stream of a message to its end.
    pub(super) async fn record_message(&self) -> RecordedStream {
        let began = Instant::now();
        match self.open_stream(Operation::SendStreamingMessage, Request::Send(self.message(false)), &[]).await {
            Ok(mut stream) => {
                stream.read(ReadUntil::End, self.agent.patience.saturating_sub(began.elapsed())).await;
                stream.close()
            }
            Err(recorded) => recorded,
        }
    }

    pub(crate) async fn open_stream(
        &self,
        operation: Operation,
        request: Request,
        headers: &[(http::HeaderName, http::HeaderValue)],
    ) -> Result<OpenStream<'_>, RecordedStream> {
        let (mut test_request, mut alternate) = match self.encode(operation, &request) {
            Ok(test_requests) => test_requests,
            Err(problem) => return Err(RecordedStream::none(Reply { seen: problem, ..Reply::default() })),
        };
        for test_request in [Some(&mut test_request), alternate.as_mut()].into_iter().flatten() {
            test_request.headers.extend(headers.iter().cloned());
        }
        let entry = self.sent_messages.begin(&request);
        let recorded = match self.request_stream(&test_request).await {
            Ok(stream) => return Ok(OpenStream { entry, ..stream }),
            Err(recorded) => recorded,
        };
        // The specification's text and its definition disagree about the HTTP method, so agents have either.
        let is_elsewhere =
            matches!(recorded.reply.status, 404 | 405) && matches!(recorded.reply.content, ReplyContent::NotA2a);
        match alternate {
            Some(alternate) if is_elsewhere || recorded.reply.status == 405 => {
                self.request_stream(&alternate).await.map(|stream| OpenStream { entry, ..stream })
            }
            _ => {
                self.sent_messages.resolve(entry, self.outcome_of(&recorded.reply));
                Err(recorded)
            }
        }
    }

    /// Sends the request as it is; a response that is no stream is the error.
    pub(crate) async fn request_stream(&self, test_request: &TestRequest) -> Result<OpenStream<'_>, RecordedStream> {
        let agent = &self.agent;
        let began = Instant::now();
        let read = |answer| {
            let reply = Reply::read(agent, &self.endpoint, test_request, answer);
            RecordedStream::none(Reply { took: began.elapsed(), ..reply })
        };
        let Opened { response, began } = match agent.open(test_request).await {
            Ok(opened) => opened,
            Err(error) => return Err(read(Err(error))),
        };
        let (parts, body) = response.into_parts();
        let (status, headers) = (parts.status.as_u16(), parts.headers);
        let reply = Reply { sent: test_request.described(), status, headers, ..Reply::default() };
        if reply.media_type() != "text/event-stream" {
            let left = agent.patience.saturating_sub(began.elapsed());
            let (body, end) = body.collect(MAX_BODY_BYTES, left).await;
            return Err(read(Ok(RawResponse { status, headers: reply.headers, body, end, took: began.elapsed() })));
        }
        let reply = Reply { seen: format!("{status} text/event-stream"), ..reply };
        let recorded = RecordedStream { end: StreamEnd::Abandoned, ..RecordedStream::none(reply) };
        let (reader, last_byte) = (EventReader::new(MAX_BODY_BYTES), Instant::now());
        Ok(OpenStream { interface: self, entry: None, body, reader, last_byte, bytes_kept: 0, recorded })
    }
}

impl OpenStream<'_> {
    /// Reads on for at most `limit`.
    pub(crate) async fn read(&mut self, until: ReadUntil, limit: Duration) {
        let mut deadline = Instant::now() + limit;
        loop {
            let is_enough =
                until == ReadUntil::First && !self.recorded.events.is_empty() || self.bytes_kept > MAX_STREAM_BYTES;
            let has_ended_now = self.recorded.end != StreamEnd::Abandoned
                || matches!(self.recorded.reply.content, ReplyContent::Error(_));
            let left = deadline.saturating_duration_since(Instant::now());
            if is_enough || has_ended_now || left.is_zero() {
                return;
            }
            let before = self.recorded.events.len();
            let chunk = self.body.next(left).await;
            if self.recorded.terminal_at.is_none() {
                self.recorded.silence = self.recorded.silence.max(self.last_byte.elapsed());
            }
            match &chunk {
                Ok(Some(chunk)) => {
                    self.last_byte = Instant::now();
                    self.recorded.has_keep_alive |= chunk.starts_with(b":");
                    self.reader.feed(chunk);
                }
                Ok(None) => self.reader.finish(),
                Err(_) => {}
            }
            loop {
                match self.reader.next_event() {
                    Ok(Some(event)) => self.take(event),
                    Ok(None) => break,
                    // An event that is too large ends the recording.
                    Err(_) => {
                        self.bytes_kept = MAX_STREAM_BYTES + 1;
                        break;
                    }
                }
            }
            match chunk {
                Ok(Some(_)) => {}
                Ok(None) => self.recorded.end = StreamEnd::Closed,
                Err(BodyError::Broken) => self.recorded.end = StreamEnd::Broken,
                Err(BodyError::Late) => return,
            }
            if self.recorded.events.len() > before {
                let wait = match () {
                    () if self.recorded.terminal_at.is_some() => CLOSE_TIMEOUT,
                    () if self.recorded.is_interrupted => INTERRUPTED_TIMEOUT,
                    () => continue,
                };
                deadline = deadline.min(Instant::now() + wait);
            }
        }
    }

    /// Reads to the terminal event. When the time is up before that, the task is fetched: if it has ended, the event
    /// must come soon; if not, the stream is not to blame.
    pub(crate) async fn read_task(&mut self, id: &str, limit: Duration) {
        self.read(ReadUntil::End, limit).await;
        let is_silent = self.recorded.end == StreamEnd::Abandoned
            && self.recorded.terminal_at.is_none()
            && !self.recorded.is_interrupted;
        if is_silent && self.bytes_kept <= MAX_STREAM_BYTES && self.interface.has_ended_now(id).await {
            self.read(ReadUntil::End, CLOSE_TIMEOUT).await;
            self.recorded.missed_terminal = self.recorded.terminal_at.is_none() && self.bytes_kept <= MAX_STREAM_BYTES;
        }
    }

    /// Stops reading and drops the connection.
    pub(crate) fn close(self) -> RecordedStream {
        self.recorded
    }

    fn take(&mut self, event: SseEvent) {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return;
        }
        let json = serde_json::from_str::<Value>(data).unwrap_or_else(|_| Value::String(data.to_owned()));
        // Over REST some agents send the bare error.
        let is_bare = json["code"].is_i64() && json["message"].is_string();
        if json["error"].is_object() || is_bare {
            let code = if is_bare { json["code"].as_i64() } else { json["error"]["code"].as_i64() };
            let recorded = &mut self.recorded;
            recorded.reply.content = ReplyContent::Error(code.and_then(switchboard_a2a::ErrorKind::from_code));
            recorded.reply.seen = self.interface.agent.sanitize(&format!("an event with {data}"));
            return;
        }
        let frame = self.unwrapped(json);
        self.bytes_kept += data.len() + EVENT_OVERHEAD;
        let (dialect, recorded) = (self.interface.dialect(), &mut self.recorded);
        if let Some(held) = holder(dialect, &frame) {
            recorded.is_interrupted = wire::is_interrupted(dialect, held);
            if recorded.terminal_at.is_none() && wire::has_ended(dialect, held) {
                recorded.terminal_at = Some(recorded.events.len());
            }
        }
        let outcome_of = match task_of(dialect, &frame) {
            _ if recorded.terminal_at.is_some() => Some(SendOutcome::Finished),
            None if matches!(wire::event(dialect, &frame), Event::Message(_)) => Some(SendOutcome::Finished),
            id => id.map(|id| SendOutcome::Running(id.to_owned())),
        };
        if let Some(outcome_of) = outcome_of {
            self.interface.sent_messages.resolve(self.entry, outcome_of);
        }
        recorded.events.push(frame);
        recorded.ids.push(event.id);
    }

    /// The result in an event; over JSON-RPC each event has its own envelope.
    fn unwrapped(&mut self, mut json: Value) -> Value {
        if !self.interface.is_rpc() {
            return json;
        }
        let problem = match () {
            () if json["jsonrpc"] != "2.0" || json.get("result").is_none() => {
                Some(format!("an event without its envelope: {}", wire::short(&json)))
            }
            () if json["id"] != 1 => Some(format!("an event with the id {}, and 1 was asked with", json["id"])),
            () => None,
        };
        self.recorded.envelopes.extend(problem);
        match json.get_mut("result") {
            Some(result) => result.take(),
            None => json,
        }
    }
}
