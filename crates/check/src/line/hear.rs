//! Listens to a stream and keeps what came: the events, and how it ended.

use std::time::Duration;

use serde_json::Value;
use switchboard_a2a::sse::EventReader;
use switchboard_a2a::{Dialect, Operation, Request};
use switchboard_egress::BodyFault;
use tokio::time::Instant;

use super::Line;
use crate::answer::{Answer, Reply, Said};
use crate::subject::Question;
use crate::wire::{self, Event};

/// How long a stream may stay open after the task has ended.
const CLOSING: Duration = Duration::from_secs(3);
/// How long it is listened to after the task has asked its caller something: it may stay open then.
const PAUSED: Duration = Duration::from_secs(2);
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
pub(crate) struct Heard {
    /// The answer where there is no stream, or the error that came in its place.
    pub(crate) reply: Reply,
    /// The results, without their envelopes.
    pub(crate) events: Vec<Value>,
    pub(crate) ending: Ending,
}

impl Heard {
    pub(crate) fn is_stream(&self) -> bool {
        self.ending != Ending::None && !matches!(self.reply.said, Said::Refused(_))
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

    /// The task, if it was not seen to end.
    pub(crate) fn left_open(&self, dialect: Dialect) -> Option<String> {
        if self.end_at(dialect).is_some() {
            return None;
        }
        self.events.iter().find_map(|frame| match wire::event(dialect, frame) {
            Event::Task(task) => task["id"].as_str().map(str::to_owned),
            _ => None,
        })
    }
}

/// What of an event holds a status.
fn holder(dialect: Dialect, frame: &Value) -> Option<&Value> {
    match wire::event(dialect, frame) {
        Event::Task(held) | Event::Status(held) => Some(held),
        _ => None,
    }
}

impl Line {
    /// Asks for a stream and listens.
    pub(crate) async fn hear(&self, operation: Operation, request: Request, until: Until) -> Heard {
        let (question, otherwise) = match self.question(operation, &request) {
            Ok(questions) => questions,
            Err(problem) => return nothing(Reply { seen: problem, ..Reply::default() }),
        };
        let heard = self.listen(&question, until).await;
        // Text and definition disagree about the method, so that agents have either.
        let is_elsewhere = matches!(heard.reply.status, 404 | 405) && matches!(heard.reply.said, Said::Nonsense);
        match otherwise {
            Some(otherwise) if is_elsewhere || heard.reply.status == 405 => self.listen(&otherwise, until).await,
            _ => heard,
        }
    }

    async fn listen(&self, question: &Question, until: Until) -> Heard {
        let subject = &self.subject;
        let read = |answer| nothing(Reply::read(subject, &self.interface, question, answer));
        let began = Instant::now();
        let response = match subject.open(question).await {
            Ok(response) => response,
            Err(error) => return read(Err(error)),
        };
        let (parts, mut body) = response.into_parts();
        let (status, headers) = (parts.status.as_u16(), parts.headers);
        let mut reply = Reply { sent: question.shown(), status, headers, ..Reply::default() };
        if reply.media_type() != "text/event-stream" {
            let left = subject.patience.saturating_sub(began.elapsed());
            let (body, _) = body.collect(LARGEST, left).await;
            return read(Ok(Answer { status, headers: reply.headers, body }));
        }
        reply.seen = format!("{status} text/event-stream");
        let mut heard = Heard { reply, events: Vec::new(), ending: Ending::Left };
        let mut reader = EventReader::new(LARGEST);
        let mut deadline = began + subject.patience;
        loop {
            let piece = body.next(deadline.saturating_duration_since(Instant::now())).await;
            match &piece {
                Ok(Some(piece)) => reader.feed(piece),
                Ok(None) => reader.finish(),
                Err(_) => {}
            }
            let before = heard.events.len();
            while let Ok(Some(event)) = reader.next_event() {
                self.take(&event.data, &mut heard);
            }
            match piece {
                Ok(Some(_)) => {}
                Ok(None) => heard.ending = Ending::Closed,
                Err(BodyFault::Broken) => heard.ending = Ending::Broken,
                Err(BodyFault::Late) => return heard,
            }
            let is_enough = until == Until::First && !heard.events.is_empty();
            if is_enough || heard.ending != Ending::Left || matches!(heard.reply.said, Said::Refused(_)) {
                return heard;
            }
            if heard.events.len() > before {
                let wait = match () {
                    () if heard.end_at(self.dialect()).is_some() => CLOSING,
                    () if heard.is_paused(self.dialect()) => PAUSED,
                    () => continue,
                };
                deadline = deadline.min(Instant::now() + wait);
            }
        }
    }

    /// Takes the data of one event.
    fn take(&self, data: &str, heard: &mut Heard) {
        let data = data.trim();
        if data.is_empty() || data == "[DONE]" {
            return;
        }
        let Ok(json) = serde_json::from_str::<Value>(data) else {
            heard.events.push(Value::String(data.to_owned()));
            return;
        };
        if json["error"].is_object() {
            let code = json["error"]["code"].as_i64();
            heard.reply.said = Said::Refused(code.and_then(switchboard_a2a::ErrorKind::from_code));
            heard.reply.seen = self.subject.clean(&format!("an event with {data}"));
        } else if self.is_rpc() {
            heard.events.push(json.get("result").cloned().unwrap_or(json));
        } else {
            heard.events.push(json);
        }
    }
}

fn nothing(reply: Reply) -> Heard {
    Heard { reply, events: Vec::new(), ending: Ending::None }
}
