//! Checks of CancelTask.

use switchboard_a2a::ErrorKind;

use crate::checks::{Check, Group, Must};
use crate::interface::{Cancellation, StreamEnd, TestedInterface};
use crate::operations::ENDED;
use crate::verdict::{CheckResult, OrSkip, Verdict, applies_if, fail, skip};
use crate::wire::{self, Event, short};

pub(crate) const CHECKS: &[Check] = &[
    Check::of_interface(Group::Operations, Must, "cancel-open", |interface| Box::pin(open(interface)))
        .title("a task that has not ended can be canceled, or the refusal is -32002")
        .rule("A2A 1.0 §3.1.5; 0.3 §7.4")
        .fix("end the work and answer with the task, or refuse with TaskNotCancelableError"),
    Check::of_interface(Group::Operations, Must, "cancel-final", |interface| Box::pin(is_final(interface)))
        .title("a task that was canceled does not change any more")
        .rule("A2A 1.0 §3.1.5, §4.1.3")
        .fix("end the work when its task is canceled, and take nothing from it after that"),
    Check::of_interface(Group::Operations, Must, "cancel-ends-streams", |interface| Box::pin(ends_streams(interface)))
        .title("whoever listens to a task hears that it was canceled, and nothing after that")
        .rule("A2A 1.0 §3.1.6, §3.5.2")
        .fix("send the canceled status to every stream of the task, and close them"),
];

const NONE_OPEN: &str = "no task was left open";

async fn open(interface: &TestedInterface) -> CheckResult {
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

async fn is_final(interface: &TestedInterface) -> CheckResult {
    let canceled = canceled(interface).await?;
    match &canceled.changed {
        None => Ok(()),
        Some((before, now)) => {
            let now_task = now.result().cloned().unwrap_or_default();
            let (before, after) = (short(&before["status"]), short(&now_task["status"]));
            let seen = if before == after { "its artifacts changed".to_owned() } else { format!("then {after}") };
            fail(&canceled.reply.sent, format!("it was {before}, {seen}"))
        }
    }
}

async fn ends_streams(interface: &TestedInterface) -> CheckResult {
    let canceled = canceled(interface).await?;
    let recorded = match &canceled.recorded {
        Some(recorded) if recorded.is_stream() && !recorded.events.is_empty() => recorded,
        _ => return skip("nobody could listen to it"),
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
    match recorded.events[end..].iter().find(|frame| !is_last_word(frame)) {
        None => Ok(()),
        Some(frame) => fail(&recorded.reply.sent, format!("after the end came {}", short(frame))),
    }
}
