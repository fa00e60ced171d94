//! Listens to a stream and keeps what came: the events, how it ended, and how long it was silent.

use std::time::Duration;

use serde_json::Value;
use switchboard_a2a::sse::{Event as Block, EventReader};
use switchboard_a2a::{Dialect, Operation, Request};
use switchboard_egress::{AnswerBody, BodyFault};
use tokio::time::Instant;

use super::Line;
use crate::answer::{Answer, Reply, Said};
use crate::subject::Question;
use crate::wire::{self, Event};

/// How long a stream may stay open after the task has ended.
const CLOSING: Duration = Duration::from_secs(3);
/// How long it is listened to after the task has asked its caller something: it may stay open then.
const PAUSED: Duration = Duration::from_millis(500);
/// The largest event that is read.
const LARGEST: usize = 8 << 20;

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
    pub(crate) ending: Ending,
    /// The longest time without a byte.
    pub(crate) silence: Duration,
    /// Whether something came that says no more than that the stream is alive.
    pub(crate) has_keep_alive: bool,
}

impl Heard {
    /// Whether there was a stream at all; one that is nothing but an error is none.
    pub(crate) fn is_stream(&self) -> bool {
        self.ending != Ending::None && (!self.events.is_empty() || !matches!(self.reply.said, Said::Refused(_)))
    }

    /// The place of the event with which the task ended.
    pub(crate) fn end_at(&self, dialect: Dialect) -> Option<usize> {
        self.events.iter().position(|frame| holder(dialect, frame).is_some_and(|held| wire::has_ended(dialect, held)))
    }

    /// Whether the last thing said was a question.
    pub(crate) fn is_paused(&self, dialect: Dialect) -> bool {
        let last = self.events.iter().rev().find_map(|frame| holder(dialect, frame));
        last.is_some_and(|held| wire::is_paused(dialect, held))
    }

    /// The task it is about.
    pub(crate) fn task_id(&self, dialect: Dialect) -> Option<String> {
        let ids = self.events.iter().filter_map(|frame| match wire::event(dialect, frame) {
            Event::Task(task) => task["id"].as_str(),
            Event::Status(update) | Event::Artifact(update) => update["taskId"].as_str(),
            Event::Message | Event::Unknown => None,
        });
        ids.map(str::to_owned).next()
    }

    /// The task, if it was not seen to end.
    pub(crate) fn left_open(&self, dialect: Dialect) -> Option<String> {
        if self.end_at(dialect).is_some() { None } else { self.task_id(dialect) }
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
    body: AnswerBody,
    reader: EventReader,
    last_byte: Instant,
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
        let heard = match self.listen(&question).await {
            Ok(listening) => return Ok(listening),
            Err(heard) => heard,
        };
        // Text and definition disagree about the method, so that agents have either.
        let is_elsewhere = matches!(heard.reply.status, 404 | 405) && matches!(heard.reply.said, Said::Nonsense);
        match otherwise {
            Some(otherwise) if is_elsewhere || heard.reply.status == 405 => self.listen(&otherwise).await,
            _ => Err(heard),
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
        let response = match subject.open(question).await {
            Ok(response) => response,
            Err(error) => return Err(read(Err(error))),
        };
        let (parts, body) = response.into_parts();
        let (status, headers) = (parts.status.as_u16(), parts.headers);
        let reply = Reply { sent: question.shown(), status, headers, ..Reply::default() };
        if reply.media_type() != "text/event-stream" {
            let left = subject.patience.saturating_sub(began.elapsed());
            let (body, _) = body.collect(LARGEST, left).await;
            return Err(read(Ok(Answer { status, headers: reply.headers, body })));
        }
        let reply = Reply { seen: format!("{status} text/event-stream"), ..reply };
        let heard = Heard { ending: Ending::Left, ..nothing(reply) };
        Ok(Listening { line: self, body, reader: EventReader::new(LARGEST), last_byte: Instant::now(), heard })
    }
}

impl Listening<'_> {
    /// Listens on, no longer than this.
    pub(crate) async fn hear(&mut self, until: Until, limit: Duration) {
        let dialect = self.line.dialect();
        let mut deadline = Instant::now() + limit;
        loop {
            let is_enough = until == Until::First && !self.heard.events.is_empty();
            let is_over = self.heard.ending != Ending::Left || matches!(self.heard.reply.said, Said::Refused(_));
            if is_enough || is_over {
                return;
            }
            let before = self.heard.events.len();
            let piece = self.body.next(deadline.saturating_duration_since(Instant::now())).await;
            if self.heard.end_at(dialect).is_none() {
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
            while let Ok(Some(event)) = self.reader.next_event() {
                self.take(event);
            }
            match piece {
                Ok(Some(_)) => {}
                Ok(None) => self.heard.ending = Ending::Closed,
                Err(BodyFault::Broken) => self.heard.ending = Ending::Broken,
                Err(BodyFault::Late) => return,
            }
            if self.heard.events.len() > before {
                let wait = match () {
                    () if self.heard.end_at(dialect).is_some() => CLOSING,
                    () if self.heard.is_paused(dialect) => PAUSED,
                    () => continue,
                };
                deadline = deadline.min(Instant::now() + wait);
            }
        }
    }

    /// Stops listening, and drops the connection if it is still there.
    pub(crate) fn leave(self) -> Heard {
        self.heard
    }

    /// Takes one event.
    fn take(&mut self, event: Block) {
        let (data, heard) = (event.data.trim(), &mut self.heard);
        if data.is_empty() || data == "[DONE]" {
            return;
        }
        let json = serde_json::from_str::<Value>(data).unwrap_or_else(|_| Value::String(data.to_owned()));
        // Over REST some send the error itself.
        let is_bare = json["code"].is_i64() && json["message"].is_string();
        if json["error"].is_object() || is_bare {
            let code = if is_bare { json["code"].as_i64() } else { json["error"]["code"].as_i64() };
            heard.reply.said = Said::Refused(code.and_then(switchboard_a2a::ErrorKind::from_code));
            heard.reply.seen = self.line.subject.clean(&format!("an event with {data}"));
            return;
        }
        let is_wrapped = self.line.is_rpc() && json.get("result").is_some();
        heard.events.push(if is_wrapped { json["result"].clone() } else { json });
        heard.ids.push(event.id);
    }
}

fn nothing(reply: Reply) -> Heard {
    let (events, ids, silence) = Default::default();
    Heard { reply, events, ids, ending: Ending::None, silence, has_keep_alive: false }
}
