//! Whether tasks can be canceled, and stay as they are after that.

use switchboard_a2a::ErrorKind;

use crate::checks::{Check, Group, Run, Severity};
use crate::interface::{Cancellation, StreamEnd, TestedInterface};
use crate::operations::ENDED;
use crate::verdict::Verdict;
use crate::wire::{self, Event, short};

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "cancel-open",
        group: Group::Operations,
        title: "a task that has not ended can be canceled, or the refusal is -32002",
        rule: "A2A 1.0 §3.1.5; 0.3 §7.4",
        severity: Severity::Must,
        fix: "end the work and answer with the task, or refuse with TaskNotCancelableError",
        run: Run::Interface(|interface| Box::pin(open(interface))),
    },
    Check {
        id: "cancel-final",
        group: Group::Operations,
        title: "a task that was canceled does not change any more",
        rule: "A2A 1.0 §3.1.5, §4.1.3",
        severity: Severity::Must,
        fix: "end the work when its task is canceled, and take nothing from it after that",
        run: Run::Interface(|interface| Box::pin(is_final(interface))),
    },
    Check {
        id: "cancel-ends-streams",
        group: Group::Operations,
        title: "whoever listens to a task hears that it was canceled, and nothing after that",
        rule: "A2A 1.0 §3.1.6, §3.5.2",
        severity: Severity::Must,
        fix: "send the canceled status to every stream of the task, and close them",
        run: Run::Interface(|interface| Box::pin(ends_streams(interface))),
    },
];

const NONE_OPEN: &str = "no task was left open";

async fn open(interface: &TestedInterface) -> Verdict {
    let Some(canceled) = interface.canceled().await else {
        return Verdict::not_applicable(NONE_OPEN);
    };
    let reply = &canceled.reply;
    match reply.result() {
        Some(task) if wire::state(interface.dialect(), task).is_some() => Verdict::pass(),
        Some(_) => reply.failure(),
        None if interface.has_ended_now(&canceled.id).await => Verdict::not_applicable(ENDED),
        None => reply.expect(&[ErrorKind::TaskNotCancelable]).about_task(&canceled.id),
    }
}

/// What came of canceling, if a task was canceled.
async fn canceled(interface: &TestedInterface) -> Result<&Cancellation, Verdict> {
    let Some(canceled) = interface.canceled().await else {
        return Err(Verdict::not_applicable(NONE_OPEN));
    };
    let none = || Verdict::not_applicable("no task was canceled at once");
    if canceled.is_canceled(interface) { Ok(canceled) } else { Err(none()) }
}

async fn is_final(interface: &TestedInterface) -> Verdict {
    let canceled = match canceled(interface).await {
        Ok(canceled) => canceled,
        Err(verdict) => return verdict,
    };
    match &canceled.changed {
        None => Verdict::pass(),
        Some((before, now)) => {
            let now_task = now.result().cloned().unwrap_or_default();
            let (before, after) = (short(&before["status"]), short(&now_task["status"]));
            let seen = if before == after { "its artifacts changed".to_owned() } else { format!("then {after}") };
            Verdict::fail(&canceled.reply.sent, format!("it was {before}, {seen}"))
        }
    }
}

async fn ends_streams(interface: &TestedInterface) -> Verdict {
    let canceled = match canceled(interface).await {
        Ok(canceled) => canceled,
        Err(verdict) => return verdict,
    };
    let recorded = match &canceled.recorded {
        Some(recorded) if recorded.is_stream() && !recorded.events.is_empty() => recorded,
        _ => return Verdict::not_applicable("nobody could listen to it"),
    };
    let Some(end) = recorded.terminal_at else {
        return match recorded.end {
            StreamEnd::Closed if recorded.is_interrupted => {
                Verdict::not_applicable("the stream was closed while the task asked something")
            }
            _ => Verdict::fail(&recorded.reply.sent, "the subscriber did not hear of it"),
        };
    };
    let is_last_word = |frame| match wire::event(interface.dialect(), frame) {
        Event::Task(held) | Event::Status(held) => wire::state(interface.dialect(), held) == Some("canceled"),
        _ => false,
    };
    match recorded.events[end..].iter().find(|frame| !is_last_word(frame)) {
        None => Verdict::pass(),
        Some(frame) => Verdict::fail(&recorded.reply.sent, format!("after the end came {}", short(frame))),
    }
}
