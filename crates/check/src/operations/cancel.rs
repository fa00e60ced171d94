//! Checks of CancelTask.

use switchboard_a2a::ErrorKind;

use crate::interface::{Cancellation, StreamEnd, TestedInterface};
use crate::operations::ENDED;
use crate::verdict::{CheckResult, OrSkip, Verdict, applies_if, fail, no_problems, skip};
use crate::wire::{self, Event, short};

const NONE_OPEN: &str = "no task was left open";

pub(crate) async fn open(interface: &TestedInterface) -> CheckResult {
    let canceled = interface.canceled().await.or_skip(NONE_OPEN)?;
    let reply = &canceled.reply;
    match reply.result() {
        Some(task) if wire::state(interface.dialect(), task).is_some() => Ok(()),
        Some(_) => reply.failure(),
        None if interface.has_ended_now(&canceled.id).await => skip(ENDED),
        None => reply.expect(&[ErrorKind::TaskNotCancelable]).about_task(&canceled.id),
    }
}

/// The cancellation, if the task was canceled at once.
async fn canceled(interface: &TestedInterface) -> CheckResult<&Cancellation> {
    let canceled = interface.canceled().await.or_skip(NONE_OPEN)?;
    applies_if(canceled.is_canceled(interface), "no task was canceled at once")?;
    Ok(canceled)
}

pub(crate) async fn is_final(interface: &TestedInterface) -> CheckResult {
    let canceled = canceled(interface).await?;
    let Some((before, now)) = &canceled.changed else { return Ok(()) };
    let now_task = now.result().cloned().unwrap_or_default();
    let (before, after) = (short(&before["status"]), short(&now_task["status"]));
    let seen = if before == after { "its artifacts changed".to_owned() } else { format!("then {after}") };
    fail(&canceled.reply.sent, format!("it was {before}, {seen}"))
}

pub(crate) async fn ends_streams(interface: &TestedInterface) -> CheckResult {
    let canceled = canceled(interface).await?;
    let recorded = match &canceled.recorded {
        Some(recorded) if recorded.is_stream() && !recorded.events.is_empty() => recorded,
        _ => return skip("it could not be subscribed to"),
    };
    let Some(end) = recorded.terminal_at else {
        return match recorded.end {
            StreamEnd::Closed if recorded.is_interrupted => {
                skip("the stream was closed while the task asked something")
            }
            _ => fail(&recorded.reply.sent, "the subscriber did not hear of it"),
        };
    };
    let is_last_word = |frame| match wire::event(interface.dialect(), frame) {
        Event::Task(held) | Event::Status(held) => wire::state(interface.dialect(), held) == Some("canceled"),
        _ => false,
    };
    let later = recorded.events[end..].iter().find(|frame| !is_last_word(frame));
    no_problems(later.map(|frame| format!("after the end came {}", short(frame))), &recorded.reply.sent)
}
