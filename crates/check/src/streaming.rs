//! Whether streams begin, go on and end as callers rely on, and can be taken up again.

pub(crate) mod subscribe;
pub(crate) mod transport;

use serde_json::Value;
use switchboard_a2a::ErrorKind;

use crate::artifacts::Artifacts;
use crate::checks::{Check, Group, Run, Severity};
use crate::errors::NOT_RPC;
use crate::interface::{RecordedStream, StreamEnd, TestedInterface};
use crate::reply::{DECLINED, ReplyContent};
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
        run: Run::Interface(|interface| Box::pin(media_type(interface))),
    },
    Check {
        id: "stream-undeclared",
        group: Group::Streaming,
        title: "an agent that does not declare streaming refuses it with -32004",
        rule: "A2A 1.0 §3.3.4",
        severity: Severity::Must,
        fix: "answer UnsupportedOperationError, or declare capabilities.streaming",
        run: Run::Interface(|interface| Box::pin(undeclared(interface))),
    },
    Check {
        id: "stream-first",
        group: Group::Streaming,
        title: "a stream begins with the task, or is a single message",
        rule: "A2A 1.0 §3.1.2",
        severity: Severity::Must,
        fix: "send the task first and its updates after it",
        run: Run::Interface(|interface| Box::pin(first(interface))),
    },
    Check {
        id: "stream-events",
        group: Group::Streaming,
        title: "every event is exactly one of the four kinds and belongs to the task",
        rule: "A2A 1.0 §3.1.2, §3.2.3, §4.2",
        severity: Severity::Must,
        fix: "send task, statusUpdate or artifactUpdate, each with taskId and contextId, or one message and nothing else",
        run: Run::Interface(|interface| Box::pin(events(interface))),
    },
    Check {
        id: "stream-envelope",
        group: Group::Streaming,
        title: "over JSON-RPC, every event is a whole answer with the id of the request",
        rule: "A2A 1.0 §9.4.2; JSON-RPC 2.0 §5; 0.3 §3.3.1",
        severity: Severity::Must,
        fix: "write every event as {\"jsonrpc\":\"2.0\",\"id\":…,\"result\":…} with the id that was asked with",
        run: Run::Interface(|interface| Box::pin(envelope(interface))),
    },
    Check {
        id: "stream-end-last",
        group: Group::Streaming,
        title: "nothing follows the end of the task but the task itself",
        rule: "A2A 1.0 §3.1.2, §3.5.2",
        severity: Severity::Must,
        fix: "send the terminal status after everything else",
        run: Run::Interface(|interface| Box::pin(end_last(interface))),
    },
    Check {
        id: "stream-closes",
        group: Group::Streaming,
        title: "the stream is closed when the task has ended",
        rule: "A2A 1.0 §3.1.2",
        severity: Severity::Must,
        fix: "close the connection in order after the terminal status",
        run: Run::Interface(|interface| Box::pin(closes(interface))),
    },
    Check {
        id: "stream-final",
        group: Group::Streaming,
        title: "in version 0.3 the status with which a stream ends says that it is final, also where it asks something",
        rule: "A2A 0.3 §7.2.2",
        severity: Severity::Must,
        fix: "set final to true on the status with which the stream ends, or keep the stream open",
        run: Run::Interface(|interface| Box::pin(is_final(interface))),
    },
    Check {
        id: "stream-whole",
        group: Group::Streaming,
        title: "a stream goes on to the end of the task, with no error in the middle",
        rule: "A2A 1.0 §3.1.2, §3.5.2; 0.3 §7.2",
        severity: Severity::Must,
        fix: "make the agent wait for whoever reads its events (back-pressure), and lose none of them",
        run: Run::Interface(|interface| Box::pin(whole(interface))),
    },
    Check {
        id: "stream-matches-task",
        group: Group::Streaming,
        title: "what was streamed is what the task holds in the end",
        rule: "A2A 1.0 §3.5.2, §4.2.2",
        severity: Severity::Must,
        fix: "join chunks in the stored task as append says, and stream every one of them",
        run: Run::Interface(|interface| Box::pin(matches_task(interface))),
    },
];

/// The stream, if there should be one.
async fn stream(interface: &TestedInterface) -> Result<&RecordedStream, Verdict> {
    if !interface.agent.has_capability("streaming") {
        return Err(Verdict::not_applicable("the card does not declare streaming"));
    }
    let recorded = interface.recorded_stream().await;
    match recorded.is_stream() && !recorded.events.is_empty() {
        true => Ok(recorded),
        false => Err(Verdict::not_applicable("there was no stream")),
    }
}

async fn media_type(interface: &TestedInterface) -> Verdict {
    if !interface.agent.has_capability("streaming") {
        return Verdict::not_applicable("the card does not declare streaming");
    }
    let recorded = interface.recorded_stream().await;
    match &recorded.reply.content {
        ReplyContent::Missing if recorded.end == StreamEnd::None => {
            Verdict::not_applicable(format!("no stream began within {} s", interface.agent.patience.as_secs()))
        }
        _ if recorded.end != StreamEnd::None => Verdict::pass(),
        _ if recorded.reply.is_declined() => Verdict::not_applicable(DECLINED),
        _ => recorded.reply.failure(),
    }
}

async fn undeclared(interface: &TestedInterface) -> Verdict {
    if interface.agent.has_capability("streaming") {
        return Verdict::not_applicable("the card declares streaming");
    }
    let recorded = interface.recorded_stream().await;
    let is_refused = !interface.is_v1() && matches!(recorded.reply.content, ReplyContent::Error(_));
    if is_refused { Verdict::pass() } else { recorded.reply.expect(&[ErrorKind::UnsupportedOperation]) }
}

async fn first(interface: &TestedInterface) -> Verdict {
    if !interface.is_v1() {
        return Verdict::not_applicable("version 0.3 leaves it open");
    }
    let recorded = match stream(interface).await {
        Ok(recorded) => recorded,
        Err(verdict) => return verdict,
    };
    match wire::event(interface.dialect(), &recorded.events[0]) {
        Event::Task(_) => Verdict::pass(),
        Event::Message(_) if recorded.events.len() == 1 => Verdict::pass(),
        Event::Message(_) => Verdict::fail(&recorded.reply.sent, "a message and more after it"),
        _ => Verdict::fail(&recorded.reply.sent, format!("the first event is {}", short(&recorded.events[0]))),
    }
}

async fn events(interface: &TestedInterface) -> Verdict {
    let recorded = match stream(interface).await {
        Ok(recorded) => recorded,
        Err(verdict) => return verdict,
    };
    let mut problems = Vec::new();
    let (mut task, mut context) = (None, None);
    for frame in &recorded.events {
        let kinds = wire::kinds(interface.dialect(), frame);
        if kinds.len() > 1 {
            problems.push(format!("an event that is {} at once: {}", kinds.join(" and "), short(frame)));
        }
        let (id, place) = match wire::event(interface.dialect(), frame) {
            Event::Unknown => {
                problems.push(format!("an event of no known kind: {}", short(frame)));
                continue;
            }
            Event::Message(_) if task.is_some() && interface.is_v1() => {
                problems.push(format!("a message in the stream of a task: {}", short(frame)));
                continue;
            }
            Event::Message(message) => {
                problems.extend(wire::message_problems(interface.dialect(), message));
                continue;
            }
            Event::Task(task) => (task["id"].as_str(), task["contextId"].as_str()),
            Event::Status(update) if wire::state(interface.dialect(), update).is_none() => {
                problems.push(format!("an update without a state: {}", short(frame)));
                continue;
            }
            Event::Status(update) | Event::Artifact(update) => {
                let place = update["contextId"].as_str();
                (place.and_then(|_| update["taskId"].as_str()), place)
            }
        };
        match id {
            None => problems.push(format!("an event without its ids: {}", short(frame))),
            Some(id) if task.is_some_and(|task| task != id) => {
                problems.push(format!("an event of another task: {}", short(frame)));
            }
            Some(_) if context.is_some() && place.is_some() && place != context => {
                problems.push(format!("an event of another context: {}", short(frame)));
            }
            Some(_) => {}
        }
        (task, context) = (task.or(id), context.or(place));
    }
    Verdict::of(&problems, &recorded.reply.sent)
}

async fn envelope(interface: &TestedInterface) -> Verdict {
    if !interface.is_rpc() {
        return Verdict::not_applicable(NOT_RPC);
    }
    match stream(interface).await {
        Ok(recorded) => Verdict::of(&recorded.envelopes, &recorded.reply.sent),
        Err(verdict) => verdict,
    }
}

async fn end_last(interface: &TestedInterface) -> Verdict {
    let recorded = match stream(interface).await {
        Ok(recorded) => recorded,
        Err(verdict) => return verdict,
    };
    let Some(end) = recorded.terminal_at else {
        return Verdict::not_applicable("the task did not end while it was listened to");
    };
    let is_last_word = |frame| match wire::event(interface.dialect(), frame) {
        Event::Task(held) | Event::Status(held) => interface.has_ended(held),
        _ => false,
    };
    match recorded.events[end..].iter().find(|frame| !is_last_word(frame)) {
        None => Verdict::pass(),
        Some(frame) => Verdict::fail(&recorded.reply.sent, format!("after the end came {}", short(frame))),
    }
}

async fn closes(interface: &TestedInterface) -> Verdict {
    if !interface.is_v1() {
        return Verdict::not_applicable("version 0.3 leaves it open");
    }
    let recorded = match stream(interface).await {
        Ok(recorded) => recorded,
        Err(verdict) => return verdict,
    };
    let has_ended = recorded.terminal_at.is_some();
    match recorded.end {
        StreamEnd::Closed if has_ended => Verdict::pass(),
        StreamEnd::Closed if recorded.is_interrupted => Verdict::pass(),
        StreamEnd::Closed if matches!(wire::event(interface.dialect(), &recorded.events[0]), Event::Message(_)) => {
            Verdict::pass()
        }
        StreamEnd::Broken if has_ended => {
            Verdict::fail(&recorded.reply.sent, "the connection broke instead of being closed")
        }
        _ if has_ended => Verdict::fail(&recorded.reply.sent, "the stream was still open 3 s after the task had ended"),
        _ => Verdict::not_applicable("the task did not end while it was listened to"),
    }
}

async fn is_final(interface: &TestedInterface) -> Verdict {
    if interface.is_v1() {
        return Verdict::not_applicable("version 1.0 does not have it");
    }
    let recorded = match stream(interface).await {
        Ok(recorded) => recorded,
        Err(verdict) => return verdict,
    };
    let last = match recorded.terminal_at {
        Some(end) => end,
        // A stream that goes on over a question has not ended with it.
        None if recorded.is_interrupted && recorded.end == StreamEnd::Closed => {
            let is_status = |frame: &Value| matches!(wire::event(interface.dialect(), frame), Event::Status(_));
            let Some(asked) = recorded.events.iter().rposition(is_status) else {
                return Verdict::not_applicable("the task had asked something before the stream began");
            };
            asked
        }
        None => return Verdict::not_applicable("the task did not end while it was listened to"),
    };
    match wire::event(interface.dialect(), &recorded.events[last]) {
        Event::Status(update) if update["final"] == true => Verdict::pass(),
        Event::Status(update) => Verdict::fail(&recorded.reply.sent, format!("final is {}", short(&update["final"]))),
        _ => Verdict::not_applicable("the task ended before the stream began"),
    }
}

async fn whole(interface: &TestedInterface) -> Verdict {
    if !interface.agent.has_capability("streaming") {
        return Verdict::not_applicable("the card does not declare streaming");
    }
    let recorded = interface.recorded_stream().await;
    match &recorded.reply.content {
        ReplyContent::Error(_) if recorded.reply.is_declined() && recorded.events.is_empty() => {
            Verdict::not_applicable(DECLINED)
        }
        // Without a stream, and the same message is no better there.
        ReplyContent::Error(_) if recorded.end == StreamEnd::None && interface.first_task().await.is_none() => {
            Verdict::not_applicable("the agent answers this message with an error")
        }
        ReplyContent::Error(_) => {
            let count = recorded.events.len();
            Verdict::fail(&recorded.reply.sent, format!("after {count} events came {}", recorded.reply.seen))
        }
        _ if recorded.end == StreamEnd::None => Verdict::not_applicable("there was no stream"),
        _ if recorded.terminal_at.is_some() || recorded.is_interrupted => Verdict::pass(),
        _ if recorded
            .events
            .iter()
            .any(|frame| matches!(wire::event(interface.dialect(), frame), Event::Message(_))) =>
        {
            Verdict::pass()
        }
        _ if matches!(recorded.end, StreamEnd::Closed | StreamEnd::Broken) => {
            let count = recorded.events.len();
            Verdict::fail(&recorded.reply.sent, format!("it was over after {count} events, and the task had not ended"))
        }
        _ => Verdict::not_applicable("the task did not end while it was listened to"),
    }
}

async fn matches_task(interface: &TestedInterface) -> Verdict {
    let recorded = match stream(interface).await {
        Ok(recorded) => recorded,
        Err(verdict) => return verdict,
    };
    if recorded.terminal_at.is_none() {
        return Verdict::not_applicable("the task did not end while it was listened to");
    }
    let Some(id) = recorded.task_id(interface.dialect()) else {
        return Verdict::not_applicable("the events have no task id");
    };
    let reply = interface.get(&id).await;
    let Some(task) = reply.result() else { return reply.failure().about_task(&id) };
    let streamed = Artifacts::of_stream(interface.dialect(), &recorded.events);
    match streamed.difference(&Artifacts::of_task(task)) {
        None => Verdict::pass(),
        Some(difference) => Verdict::fail(&recorded.reply.sent, difference),
    }
}
