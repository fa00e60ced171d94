//! Listens to a stream and keeps what came: the events, how it ended, and how long it was silent.

use std::time::Duration;

use serde_json::Value;
use switchboard_a2a::sse::{Event as Block, EventReader};
use switchboard_a2a::{Dialect, Operation, Request};
use switchboard_egress::{AnswerBody, BodyFault};
use tokio::time::Instant;

use super::Line;
use super::ledger::Became;
use crate::answer::{Answer, Reply, Said};
use crate::question::Question;
use crate::shared::GivenUp;
use crate::subject::{LARGEST, Opened};
use crate::wire::{self, Event};

/// How long a stream may stay open after the task has ended.
const CLOSING: Duration = Duration::from_secs(3);
/// How long it is listened to after the task has asked its caller something: it may stay open then.
const PAUSED: Duration = Duration::from_millis(500);
/// The most that is kept of one stream, and what an event weighs beside its bytes.
const HEAVIEST: usize = 24 << 20;
const FRAME: usize = 200;

/// When to stop listening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// At the first event.
    First,
    /// At the end of the stream.
    End,
}

/// How listening ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// There was no stream.
    None,
    /// The agent closed it in order.
    Closed,
    /// The connection broke.
    Broken,
    /// We stopped listening: enough was heard, or the time was up.
    Left,
}

/// What was heard.
#[derive(Debug)]
pub(crate) struct Heard {
    /// The answer where there is no stream, or the error that came in its place.
    pub(crate) reply: Reply,
    /// The results, without their envelopes.
    pub(crate) events: Vec<Value>,
    /// The id of each of them, where it has one.
    pub(crate) ids: Vec<Option<String>>,
    /// What is wrong with the envelopes.
    pub(crate) envelopes: Vec<String>,
    pub(crate) ending: Ending,
    /// The place of the event with which the task ended.
    pub(crate) end_at: Option<usize>,
    /// Whether the last thing said was a question.
    pub(crate) is_paused: bool,
    /// Whether the task is known to have ended while somebody still listened, long enough to be told of it.
    pub(crate) has_missed_the_end: bool,
    /// The longest time without a byte.
    pub(crate) silence: Duration,
    /// Whether something came that says no more than that the stream is alive.
    pub(crate) has_keep_alive: bool,
}

impl GivenUp for Heard {
    fn given_up() -> Self {
        nothing(Reply::given_up())
    }
}

impl Heard {
    /// Whether there was a stream at all; one that is nothing but an error is none.
    pub(crate) fn is_stream(&self) -> bool {
        self.ending != Ending::None && (!self.events.is_empty() || !matches!(self.reply.said, Said::Refused(_)))
    }

    /// The task it is about.
    pub(crate) fn task_id(&self, dialect: Dialect) -> Option<String> {
        self.events.iter().find_map(|frame| task_of(dialect, frame)).map(str::to_owned)
    }
}

/// The task that an event belongs to.
fn task_of(dialect: Dialect, frame: &Value) -> Option<&str> {
    match wire::event(dialect, frame) {
        Event::Task(task) => task["id"].as_str(),
        Event::Status(update) | Event::Artifact(update) => update["taskId"].as_str(),
        Event::Message(_) | Event::Unknown => None,
    }
}

/// What of an event holds a status.
fn holder(dialect: Dialect, frame: &Value) -> Option<&Value> {
    match wire::event(dialect, frame) {
        Event::Task(held) | Event::Status(held) => Some(held),
        _ => None,
    }
}

/// A stream that is being listened to.
pub(crate) struct Listening<'a> {
    line: &'a Line,
    /// The message it answers, in the ledger.
    entry: Option<usize>,
    body: AnswerBody,
    reader: EventReader,
    last_byte: Instant,
    /// How much is kept by now.
    weight: usize,
    heard: Heard,
}

impl Line {
    /// Asks for a stream and listens.
    pub(crate) async fn hear(&self, operation: Operation, request: Request, until: Until) -> Heard {
        let began = Instant::now();
        match self.begin(operation, request, &[]).await {
            Ok(mut listening) => {
                listening.hear(until, self.subject.patience.saturating_sub(began.elapsed())).await;
                listening.leave()
            }
            Err(heard) => heard,
        }
    }

    /// Asks for a stream.
    pub(crate) async fn begin(
        &self,
        operation: Operation,
        request: Request,
        headers: &[(http::HeaderName, http::HeaderValue)],
    ) -> Result<Listening<'_>, Heard> {
        let (mut question, mut otherwise) = match self.question(operation, &request) {
            Ok(questions) => questions,
            Err(problem) => return Err(nothing(Reply { seen: problem, ..Reply::default() })),
        };
        for question in [Some(&mut question), otherwise.as_mut()].into_iter().flatten() {
            question.headers.extend(headers.iter().cloned());
        }
        let entry = self.ledger.begin(&request);
        let heard = match self.listen(&question).await {
            Ok(listening) => return Ok(Listening { entry, ..listening }),
            Err(heard) => heard,
        };
        // Text and definition disagree about the method, so that agents have either.
        let is_elsewhere = matches!(heard.reply.status, 404 | 405) && matches!(heard.reply.said, Said::Nonsense);
        match otherwise {
            Some(otherwise) if is_elsewhere || heard.reply.status == 405 => {
                self.listen(&otherwise).await.map(|listening| Listening { entry, ..listening })
            }
            _ => {
                self.ledger.settle(entry, self.became(&heard.reply));
                Err(heard)
            }
        }
    }

    /// Asks as it is written; what is no stream is an answer.
    pub(crate) async fn listen(&self, question: &Question) -> Result<Listening<'_>, Heard> {
        let subject = &self.subject;
        let began = Instant::now();
        let read = |answer| {
            let reply = Reply::read(subject, &self.interface, question, answer);
            nothing(Reply { took: began.elapsed(), ..reply })
        };
        let Opened { response, began } = match subject.open(question).await {
            Ok(opened) => opened,
            Err(error) => return Err(read(Err(error))),
        };
        let (parts, body) = response.into_parts();
        let (status, headers) = (parts.status.as_u16(), parts.headers);
        let reply = Reply { sent: question.shown(), status, headers, ..Reply::default() };
        if reply.media_type() != "text/event-stream" {
            let left = subject.patience.saturating_sub(began.elapsed());
            let (body, end) = body.collect(LARGEST, left).await;
            return Err(read(Ok(Answer { status, headers: reply.headers, body, end, took: began.elapsed() })));
        }
        let reply = Reply { seen: format!("{status} text/event-stream"), ..reply };
        let heard = Heard { ending: Ending::Left, ..nothing(reply) };
        let (reader, last_byte) = (EventReader::new(LARGEST), Instant::now());
        Ok(Listening { line: self, entry: None, body, reader, last_byte, weight: 0, heard })
    }
}

impl Listening<'_> {
    /// Listens on, no longer than this, however much there is to hear.
    pub(crate) async fn hear(&mut self, until: Until, limit: Duration) {
        let mut deadline = Instant::now() + limit;
        loop {
            let is_enough = until == Until::First && !self.heard.events.is_empty() || self.weight > HEAVIEST;
            let is_over = self.heard.ending != Ending::Left || matches!(self.heard.reply.said, Said::Refused(_));
            let left = deadline.saturating_duration_since(Instant::now());
            if is_enough || is_over || left.is_zero() {
                return;
            }
            let before = self.heard.events.len();
            let piece = self.body.next(left).await;
            if self.heard.end_at.is_none() {
                self.heard.silence = self.heard.silence.max(self.last_byte.elapsed());
            }
            match &piece {
                Ok(Some(piece)) => {
                    self.last_byte = Instant::now();
                    self.heard.has_keep_alive |= piece.starts_with(b":");
                    self.reader.feed(piece);
                }
                Ok(None) => self.reader.finish(),
                Err(_) => {}
            }
            loop {
                match self.reader.next_event() {
                    Ok(Some(event)) => self.take(event),
                    Ok(None) => break,
                    // What cannot be kept is as good as not heard.
                    Err(_) => {
                        self.weight = HEAVIEST + 1;
                        break;
                    }
                }
            }
            match piece {
                Ok(Some(_)) => {}
                Ok(None) => self.heard.ending = Ending::Closed,
                Err(BodyFault::Broken) => self.heard.ending = Ending::Broken,
                Err(BodyFault::Late) => return,
            }
            if self.heard.events.len() > before {
                let wait = match () {
                    () if self.heard.end_at.is_some() => CLOSING,
                    () if self.heard.is_paused => PAUSED,
                    () => continue,
                };
                deadline = deadline.min(Instant::now() + wait);
            }
        }
    }

    /// Listens to the end of a task. Where the time is up before that, the task is looked at: if it has ended, whoever
    /// listens must be told soon; if not, nothing can be said against the stream.
    pub(crate) async fn hear_task(&mut self, id: &str, limit: Duration) {
        self.hear(Until::End, limit).await;
        let is_silent = self.heard.ending == Ending::Left && self.heard.end_at.is_none() && !self.heard.is_paused;
        if is_silent && self.weight <= HEAVIEST && self.line.is_over(id).await {
            self.hear(Until::End, CLOSING).await;
            self.heard.has_missed_the_end = self.heard.end_at.is_none() && self.weight <= HEAVIEST;
        }
    }

    /// Stops listening, and drops the connection if it is still there.
    pub(crate) fn leave(self) -> Heard {
        self.heard
    }

    /// Takes one event.
    fn take(&mut self, event: Block) {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return;
        }
        let json = serde_json::from_str::<Value>(data).unwrap_or_else(|_| Value::String(data.to_owned()));
        // Over REST some send the error itself.
        let is_bare = json["code"].is_i64() && json["message"].is_string();
        if json["error"].is_object() || is_bare {
            let code = if is_bare { json["code"].as_i64() } else { json["error"]["code"].as_i64() };
            let heard = &mut self.heard;
            heard.reply.said = Said::Refused(code.and_then(switchboard_a2a::ErrorKind::from_code));
            heard.reply.seen = self.line.subject.clean(&format!("an event with {data}"));
            return;
        }
        let frame = self.unwrapped(json);
        self.weight += data.len() + FRAME;
        let (dialect, heard) = (self.line.dialect(), &mut self.heard);
        if let Some(held) = holder(dialect, &frame) {
            heard.is_paused = wire::is_paused(dialect, held);
            if heard.end_at.is_none() && wire::has_ended(dialect, held) {
                heard.end_at = Some(heard.events.len());
            }
        }
        let became = match task_of(dialect, &frame) {
            _ if heard.end_at.is_some() => Some(Became::Nothing),
            None if matches!(wire::event(dialect, &frame), Event::Message(_)) => Some(Became::Nothing),
            id => id.map(|id| Became::Task(id.to_owned())),
        };
        if let Some(became) = became {
            self.line.ledger.settle(self.entry, became);
        }
        heard.events.push(frame);
        heard.ids.push(event.id);
    }

    /// The result in an event. Over JSON-RPC it is in an envelope, of which every event has its own.
    fn unwrapped(&mut self, mut json: Value) -> Value {
        if !self.line.is_rpc() {
            return json;
        }
        let problem = match () {
            () if json["jsonrpc"] != "2.0" || json.get("result").is_none() => {
                Some(format!("an event without its envelope: {}", wire::short(&json)))
            }
            () if json["id"] != 1 => Some(format!("an event with the id {}, and 1 was asked with", json["id"])),
            () => None,
        };
        self.heard.envelopes.extend(problem);
        match json.get_mut("result") {
            Some(result) => result.take(),
            None => json,
        }
    }
}

fn nothing(reply: Reply) -> Heard {
    let (events, ids, envelopes, end_at, silence) = Default::default();
    let (ending, is_paused, has_missed_the_end, has_keep_alive) = (Ending::None, false, false, false);
    Heard { reply, events, ids, envelopes, ending, end_at, is_paused, has_missed_the_end, silence, has_keep_alive }
}
