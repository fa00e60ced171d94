//! Whether streams begin, go on and end as callers rely on, and can be taken up again.

use switchboard_a2a::{ErrorKind, Operation, Request, TaskId};

use crate::answer::{DECLINED, Said};
use crate::checks::{Check, Group, Run, Severity};
use crate::line::{Ending, Heard, Line, NOBODYS, Until};
use crate::operations::{ENDED, has_ended, left_behind};
use crate::verdict::Verdict;
use crate::wire::{self, Event, short};

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "stream-media-type",
        group: Group::Streaming,
        title: "a stream is served as text/event-stream",
        rule: "A2A 1.0 §9.4.2, §11.7",
        severity: Severity::Must,
        fix: "send Content-Type: text/event-stream, and events as data lines",
        run: Run::Interface(|line| Box::pin(media_type(line))),
    },
    Check {
        id: "stream-undeclared",
        group: Group::Streaming,
        title: "an agent that does not declare streaming refuses it with -32004",
        rule: "A2A 1.0 §3.3.4",
        severity: Severity::Must,
        fix: "answer UnsupportedOperationError, or declare capabilities.streaming",
        run: Run::Interface(|line| Box::pin(undeclared(line))),
    },
    Check {
        id: "stream-first",
        group: Group::Streaming,
        title: "a stream begins with the task, or is a single message",
        rule: "A2A 1.0 §3.1.2",
        severity: Severity::Must,
        fix: "send the task first and its updates after it",
        run: Run::Interface(|line| Box::pin(first(line))),
    },
    Check {
        id: "stream-events",
        group: Group::Streaming,
        title: "every event is one of the four kinds and belongs to the task",
        rule: "A2A 1.0 §3.2.3, §4.2",
        severity: Severity::Must,
        fix: "send task, message, statusUpdate or artifactUpdate, each with taskId and contextId",
        run: Run::Interface(|line| Box::pin(events(line))),
    },
    Check {
        id: "stream-end-last",
        group: Group::Streaming,
        title: "nothing follows the end of the task but the task itself",
        rule: "A2A 1.0 §3.1.2, §3.5.2",
        severity: Severity::Must,
        fix: "send the terminal status after everything else",
        run: Run::Interface(|line| Box::pin(end_last(line))),
    },
    Check {
        id: "stream-closes",
        group: Group::Streaming,
        title: "the stream is closed when the task has ended",
        rule: "A2A 1.0 §3.1.2",
        severity: Severity::Must,
        fix: "close the connection in order after the terminal status",
        run: Run::Interface(|line| Box::pin(closes(line))),
    },
    Check {
        id: "stream-final",
        group: Group::Streaming,
        title: "in version 0.3 the last status says that it is final",
        rule: "A2A 0.3 §7.2.2",
        severity: Severity::Must,
        fix: "set final to true on the status with which the stream ends",
        run: Run::Interface(|line| Box::pin(is_final(line))),
    },
    Check {
        id: "subscribe-unknown",
        group: Group::Streaming,
        title: "subscribing to a task that does not exist is refused with -32001",
        rule: "A2A 1.0 §3.1.6",
        severity: Severity::Must,
        fix: "answer TaskNotFoundError",
        run: Run::Interface(|line| Box::pin(subscribe_unknown(line))),
    },
    Check {
        id: "subscribe-ended",
        group: Group::Streaming,
        title: "subscribing to a task that has ended is refused with -32004",
        rule: "A2A 1.0 §3.1.6",
        severity: Severity::Must,
        fix: "answer UnsupportedOperationError",
        run: Run::Interface(|line| Box::pin(subscribe_ended(line))),
    },
    Check {
        id: "subscribe-open",
        group: Group::Streaming,
        title: "any task that has not ended can be subscribed to, and the stream begins with it",
        rule: "A2A 1.0 §3.1.6",
        severity: Severity::Must,
        fix: "let SubscribeToTask find tasks in the store, not only those at work in this process",
        run: Run::Interface(|line| Box::pin(subscribe_open(line))),
    },
    Check {
        id: "subscribe-twice",
        group: Group::Streaming,
        title: "a task can be subscribed to more than once at the same time",
        rule: "A2A 1.0 §3.5.2 allows it",
        severity: Severity::Quality,
        fix: "send events to every stream of the task",
        run: Run::Interface(|line| Box::pin(subscribe_twice(line))),
    },
];

/// The stream, if there should be one.
async fn stream(line: &Line) -> Result<&Heard, Verdict> {
    if !line.subject.can("streaming") {
        return Err(Verdict::not_applicable("the card does not declare streaming"));
    }
    let heard = line.heard().await;
    match heard.is_stream() && !heard.events.is_empty() {
        true => Ok(heard),
        false => Err(Verdict::not_applicable("there was no stream")),
    }
}

async fn media_type(line: &Line) -> Verdict {
    if !line.subject.can("streaming") {
        return Verdict::not_applicable("the card does not declare streaming");
    }
    let heard = line.heard().await;
    match &heard.reply.said {
        Said::Nothing if heard.ending == Ending::None => {
            Verdict::not_applicable(format!("no stream began within {} s", line.subject.patience.as_secs()))
        }
        _ if heard.is_stream() => Verdict::pass(),
        _ if heard.reply.is_declined() => Verdict::not_applicable(DECLINED),
        _ => heard.reply.complaint(),
    }
}

async fn undeclared(line: &Line) -> Verdict {
    if line.subject.can("streaming") {
        return Verdict::not_applicable("the card declares streaming");
    }
    let heard = line.heard().await;
    let is_refused = !line.is_v1() && matches!(heard.reply.said, Said::Refused(_));
    if is_refused { Verdict::pass() } else { heard.reply.expect(&[ErrorKind::UnsupportedOperation]) }
}

async fn first(line: &Line) -> Verdict {
    if !line.is_v1() {
        return Verdict::not_applicable("version 0.3 leaves it open");
    }
    let heard = match stream(line).await {
        Ok(heard) => heard,
        Err(verdict) => return verdict,
    };
    match wire::event(line.dialect(), &heard.events[0]) {
        Event::Task(_) => Verdict::pass(),
        Event::Message if heard.events.len() == 1 => Verdict::pass(),
        Event::Message => Verdict::fail(&heard.reply.sent, "a message and more after it"),
        _ => Verdict::fail(&heard.reply.sent, format!("the first event is {}", short(&heard.events[0]))),
    }
}

async fn events(line: &Line) -> Verdict {
    let heard = match stream(line).await {
        Ok(heard) => heard,
        Err(verdict) => return verdict,
    };
    let mut problems = Vec::new();
    let mut task = None;
    for frame in &heard.events {
        let id = match wire::event(line.dialect(), frame) {
            Event::Unknown => {
                problems.push(format!("an event of no known kind: {}", short(frame)));
                continue;
            }
            Event::Message => continue,
            Event::Task(task) => task["id"].as_str(),
            Event::Status(update) if wire::state(line.dialect(), update).is_none() => {
                problems.push(format!("an update without a state: {}", short(frame)));
                continue;
            }
            Event::Status(update) | Event::Artifact(update) => {
                update["contextId"].as_str().and_then(|_| update["taskId"].as_str())
            }
        };
        match (id, task) {
            (None, _) => problems.push(format!("an event without its ids: {}", short(frame))),
            (Some(id), Some(task)) if id != task => {
                problems.push(format!("an event of another task: {}", short(frame)))
            }
            (Some(id), _) => task = Some(id),
        }
    }
    problems.truncate(3);
    Verdict::of(&problems, &heard.reply.sent)
}

async fn end_last(line: &Line) -> Verdict {
    let heard = match stream(line).await {
        Ok(heard) => heard,
        Err(verdict) => return verdict,
    };
    let Some(end) = heard.end_at(line.dialect()) else {
        return Verdict::not_applicable("the task did not end while it was listened to");
    };
    let is_last_word = |frame| match wire::event(line.dialect(), frame) {
        Event::Task(held) | Event::Status(held) => wire::has_ended(line.dialect(), held),
        _ => false,
    };
    match heard.events[end..].iter().find(|frame| !is_last_word(frame)) {
        None => Verdict::pass(),
        Some(frame) => Verdict::fail(&heard.reply.sent, format!("after the end came {}", short(frame))),
    }
}

async fn closes(line: &Line) -> Verdict {
    if !line.is_v1() {
        return Verdict::not_applicable("version 0.3 leaves it open");
    }
    let heard = match stream(line).await {
        Ok(heard) => heard,
        Err(verdict) => return verdict,
    };
    let has_ended = heard.end_at(line.dialect()).is_some();
    match heard.ending {
        Ending::Closed if has_ended => Verdict::pass(),
        Ending::Closed if heard.is_paused(line.dialect()) => Verdict::pass(),
        Ending::Closed if matches!(wire::event(line.dialect(), &heard.events[0]), Event::Message) => Verdict::pass(),
        Ending::Closed => Verdict::fail(&heard.reply.sent, "the stream was closed before the task had ended"),
        Ending::Broken => Verdict::fail(&heard.reply.sent, "the connection broke in the middle of the stream"),
        _ if has_ended => Verdict::fail(&heard.reply.sent, "the stream was still open 3 s after the task had ended"),
        _ => Verdict::not_applicable("the task did not end while it was listened to"),
    }
}

async fn is_final(line: &Line) -> Verdict {
    if line.is_v1() {
        return Verdict::not_applicable("version 1.0 does not have it");
    }
    let heard = match stream(line).await {
        Ok(heard) => heard,
        Err(verdict) => return verdict,
    };
    let Some(end) = heard.end_at(line.dialect()) else {
        return Verdict::not_applicable("the task did not end while it was listened to");
    };
    match wire::event(line.dialect(), &heard.events[end]) {
        Event::Status(update) if update["final"] == true => Verdict::pass(),
        Event::Status(update) => Verdict::fail(&heard.reply.sent, format!("final is {}", short(&update["final"]))),
        _ => Verdict::not_applicable("the task ended before the stream began"),
    }
}

async fn subscribe(line: &Line, id: &str) -> Heard {
    let request = Request::Subscribe { id: TaskId::from(id), tenant: line.tenant() };
    line.hear(Operation::SubscribeToTask, request, Until::First).await
}

/// Why subscribing need not work here, if it need not.
fn exempt(line: &Line) -> Option<Verdict> {
    let why = match () {
        () if !line.subject.can("streaming") => "the card does not declare streaming",
        () if !line.is_v1() => "version 0.3 leaves it open",
        () => return None,
    };
    Some(Verdict::not_applicable(why))
}

async fn subscribe_unknown(line: &Line) -> Verdict {
    if let Some(verdict) = exempt(line) {
        return verdict;
    }
    subscribe(line, NOBODYS).await.reply.expect(&[ErrorKind::TaskNotFound])
}

async fn subscribe_ended(line: &Line) -> Verdict {
    if let Some(verdict) = exempt(line) {
        return verdict;
    }
    let Some(id) = line.ended().await else {
        return Verdict::not_applicable("no task has ended");
    };
    let heard = subscribe(line, id).await;
    if heard.is_stream() {
        let begin = heard.events.first().map(short).unwrap_or_default();
        return Verdict::fail(&heard.reply.sent, format!("a stream: {begin}"));
    }
    heard.reply.expect(&[ErrorKind::UnsupportedOperation])
}

/// A task that has not ended, as far as one can tell.
async fn open_task(line: &Line) -> Result<String, Verdict> {
    if let Some(verdict) = exempt(line) {
        return Err(verdict);
    }
    if let Some(id) = line.running().await {
        return Ok(id.to_owned());
    }
    // One whose work came to nothing can be asked about all the same.
    let left = left_behind(line).await.ok().and_then(|task| task["id"].as_str().map(str::to_owned));
    left.ok_or_else(|| Verdict::not_applicable("the agent has made no task"))
}

async fn subscribe_open(line: &Line) -> Verdict {
    let id = match open_task(line).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    let heard = subscribe(line, &id).await;
    if begins_with(line, &heard, &id) { Verdict::pass() } else { judged(line, &heard, &id).await }
}

async fn subscribe_twice(line: &Line) -> Verdict {
    let id = match open_task(line).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    let (one, other) = tokio::join!(subscribe(line, &id), subscribe(line, &id));
    for heard in [one, other] {
        if !begins_with(line, &heard, &id) {
            return judged(line, &heard, &id).await;
        }
    }
    Verdict::pass()
}

fn begins_with(line: &Line, heard: &Heard, id: &str) -> bool {
    let first = heard.events.first().map(|frame| wire::event(line.dialect(), frame));
    heard.is_stream() && matches!(first, Some(Event::Task(task)) if task["id"] == id)
}

/// A stream that did not begin as it should: a fault, unless the task had ended by then.
async fn judged(line: &Line, heard: &Heard, id: &str) -> Verdict {
    if has_ended(line, id).await {
        return Verdict::not_applicable(ENDED);
    }
    match heard.events.first() {
        Some(frame) => Verdict::fail(&heard.reply.sent, format!("the first event is {}", short(frame))),
        None => heard.reply.complaint(),
    }
}
