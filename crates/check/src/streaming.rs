//! Checks of streams: how they begin, continue and end.

pub(crate) mod subscribe;
pub(crate) mod transport;

use serde_json::Value;
use switchboard_a2a::ErrorKind;

use crate::artifacts::Artifacts;
use crate::errors::NOT_RPC;
use crate::interface::{RecordedStream, StreamEnd, TestedInterface};
use crate::reply::{DECLINED, ReplyContent};
use crate::verdict::{CheckResult, OrSkip, Verdict, applies_if, fail, no_problems, skip};
use crate::wire::{self, Event, short};

/// The recorded stream, if the card declares streaming.
async fn stream(interface: &TestedInterface) -> CheckResult<&RecordedStream> {
    applies_if(interface.agent.has_capability("streaming"), "the card does not declare streaming")?;
    let recorded = interface.recorded_stream().await;
    match recorded.is_stream() && !recorded.events.is_empty() {
        true => Ok(recorded),
        false => skip("there was no stream"),
    }
}

pub(crate) async fn media_type(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.agent.has_capability("streaming"), "the card does not declare streaming")?;
    let recorded = interface.recorded_stream().await;
    match &recorded.reply.content {
        ReplyContent::Missing if recorded.end == StreamEnd::None => {
            skip(format!("no stream began within {} s", interface.agent.patience.as_secs()))
        }
        _ if recorded.end != StreamEnd::None => Ok(()),
        _ if recorded.reply.is_declined() => skip(DECLINED),
        _ => recorded.reply.failure(),
    }
}

pub(crate) async fn undeclared(interface: &TestedInterface) -> CheckResult {
    applies_if(!interface.agent.has_capability("streaming"), "the card declares streaming")?;
    let recorded = interface.recorded_stream().await;
    let is_refused = !interface.is_v1() && matches!(recorded.reply.content, ReplyContent::Error(_));
    if is_refused { Ok(()) } else { recorded.reply.expect(&[ErrorKind::UnsupportedOperation]) }
}

pub(crate) async fn first(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 leaves it open")?;
    let recorded = stream(interface).await?;
    match wire::event(interface.dialect(), &recorded.events[0]) {
        Event::Task(_) => Ok(()),
        Event::Message(_) if recorded.events.len() == 1 => Ok(()),
        Event::Message(_) => fail(&recorded.reply.sent, "a message and more after it"),
        _ => fail(&recorded.reply.sent, format!("the first event is {}", short(&recorded.events[0]))),
    }
}

pub(crate) async fn events(interface: &TestedInterface) -> CheckResult {
    let recorded = stream(interface).await?;
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
    no_problems(problems, &recorded.reply.sent)
}

pub(crate) async fn envelope(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_rpc(), NOT_RPC)?;
    let recorded = stream(interface).await?;
    no_problems(recorded.envelopes.clone(), &recorded.reply.sent)
}

pub(crate) async fn end_last(interface: &TestedInterface) -> CheckResult {
    let recorded = stream(interface).await?;
    let end = recorded.terminal_at.or_skip("the task did not end while it was listened to")?;
    let is_last_word = |frame| match wire::event(interface.dialect(), frame) {
        Event::Task(held) | Event::Status(held) => interface.has_ended(held),
        _ => false,
    };
    let later = recorded.events[end..].iter().find(|frame| !is_last_word(frame));
    no_problems(later.map(|frame| format!("after the end came {}", short(frame))), &recorded.reply.sent)
}

pub(crate) async fn closes(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 leaves it open")?;
    let recorded = stream(interface).await?;
    let has_ended = recorded.terminal_at.is_some();
    match recorded.end {
        StreamEnd::Closed if has_ended => Ok(()),
        StreamEnd::Closed if recorded.is_interrupted => Ok(()),
        StreamEnd::Closed if matches!(wire::event(interface.dialect(), &recorded.events[0]), Event::Message(_)) => {
            Ok(())
        }
        StreamEnd::Broken if has_ended => fail(&recorded.reply.sent, "the connection broke instead of being closed"),
        _ if has_ended => fail(&recorded.reply.sent, "the stream was still open 3 s after the task had ended"),
        _ => skip("the task did not end while it was listened to"),
    }
}

pub(crate) async fn is_final(interface: &TestedInterface) -> CheckResult {
    applies_if(!interface.is_v1(), "version 1.0 does not have it")?;
    let recorded = stream(interface).await?;
    let last = match recorded.terminal_at {
        Some(end) => end,
        // A stream that continues after an interrupted state has not ended with it.
        None if recorded.is_interrupted && recorded.end == StreamEnd::Closed => {
            let is_status = |frame: &Value| matches!(wire::event(interface.dialect(), frame), Event::Status(_));
            let asked = recorded.events.iter().rposition(is_status);
            asked.or_skip("the task had asked something before the stream began")?
        }
        None => return skip("the task did not end while it was listened to"),
    };
    match wire::event(interface.dialect(), &recorded.events[last]) {
        Event::Status(update) if update["final"] == true => Ok(()),
        Event::Status(update) => fail(&recorded.reply.sent, format!("final is {}", short(&update["final"]))),
        _ => skip("the task ended before the stream began"),
    }
}

pub(crate) async fn whole(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.agent.has_capability("streaming"), "the card does not declare streaming")?;
    let recorded = interface.recorded_stream().await;
    match &recorded.reply.content {
        ReplyContent::Error(_) if recorded.reply.is_declined() && recorded.events.is_empty() => skip(DECLINED),
        // A blocking send of the same message fails as well.
        ReplyContent::Error(_) if recorded.end == StreamEnd::None && interface.first_task().await.is_none() => {
            skip("the agent answers this message with an error")
        }
        ReplyContent::Error(_) => {
            let count = recorded.events.len();
            fail(&recorded.reply.sent, format!("after {count} events came {}", recorded.reply.seen))
        }
        _ if recorded.end == StreamEnd::None => skip("there was no stream"),
        _ if recorded.terminal_at.is_some() || recorded.is_interrupted => Ok(()),
        _ if recorded
            .events
            .iter()
            .any(|frame| matches!(wire::event(interface.dialect(), frame), Event::Message(_))) =>
        {
            Ok(())
        }
        _ if matches!(recorded.end, StreamEnd::Closed | StreamEnd::Broken) => {
            let count = recorded.events.len();
            fail(&recorded.reply.sent, format!("it was over after {count} events, and the task had not ended"))
        }
        _ => skip("the task did not end while it was listened to"),
    }
}

pub(crate) async fn matches_task(interface: &TestedInterface) -> CheckResult {
    let recorded = stream(interface).await?;
    applies_if(recorded.terminal_at.is_some(), "the task did not end while it was listened to")?;
    let id = recorded.task_id(interface.dialect()).or_skip("the events have no task id")?;
    let reply = interface.get(&id).await;
    let Some(task) = reply.result() else { return reply.failure().about_task(&id) };
    let streamed = Artifacts::of_stream(interface.dialect(), &recorded.events);
    no_problems(streamed.difference(&Artifacts::of_task(task)), &recorded.reply.sent)
}
