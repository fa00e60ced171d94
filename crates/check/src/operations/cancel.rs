//! Whether tasks can be canceled, and stay as they are after that.

use switchboard_a2a::ErrorKind;

use crate::checks::{Check, Group, Run, Severity};
use crate::line::{Canceled, Ending, Line};
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
        run: Run::Interface(|line| Box::pin(open(line))),
    },
    Check {
        id: "cancel-final",
        group: Group::Operations,
        title: "a task that was canceled does not change any more",
        rule: "A2A 1.0 §3.1.5, §4.1.3",
        severity: Severity::Must,
        fix: "end the work when its task is canceled, and take nothing from it after that",
        run: Run::Interface(|line| Box::pin(is_final(line))),
    },
    Check {
        id: "cancel-ends-streams",
        group: Group::Operations,
        title: "whoever listens to a task hears that it was canceled, and nothing after that",
        rule: "A2A 1.0 §3.1.6, §3.5.2",
        severity: Severity::Must,
        fix: "send the canceled status to every stream of the task, and close them",
        run: Run::Interface(|line| Box::pin(ends_streams(line))),
    },
];

const NONE_OPEN: &str = "no task was left open";

async fn open(line: &Line) -> Verdict {
    let Some(canceled) = line.canceled().await else {
        return Verdict::not_applicable(NONE_OPEN);
    };
    let reply = &canceled.reply;
    match reply.result() {
        Some(task) if wire::state(line.dialect(), task).is_some() => Verdict::pass(),
        Some(_) => reply.complaint(),
        None if line.is_over(&canceled.id).await => Verdict::not_applicable(ENDED),
        None => reply.expect(&[ErrorKind::TaskNotCancelable]).about(&canceled.id),
    }
}

/// What came of canceling, if a task was canceled.
async fn canceled(line: &Line) -> Result<&Canceled, Verdict> {
    let Some(canceled) = line.canceled().await else {
        return Err(Verdict::not_applicable(NONE_OPEN));
    };
    let none = || Verdict::not_applicable("no task was canceled at once");
    if canceled.is_done(line) { Ok(canceled) } else { Err(none()) }
}

async fn is_final(line: &Line) -> Verdict {
    let canceled = match canceled(line).await {
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

async fn ends_streams(line: &Line) -> Verdict {
    let canceled = match canceled(line).await {
        Ok(canceled) => canceled,
        Err(verdict) => return verdict,
    };
    let heard = match &canceled.heard {
        Some(heard) if heard.is_stream() && !heard.events.is_empty() => heard,
        _ => return Verdict::not_applicable("nobody could listen to it"),
    };
    let Some(end) = heard.end_at else {
        return match heard.ending {
            Ending::Closed if heard.is_paused => {
                Verdict::not_applicable("the stream was closed while the task asked something")
            }
            _ => Verdict::fail(&heard.reply.sent, "the subscriber did not hear of it"),
        };
    };
    let is_last_word = |frame| match wire::event(line.dialect(), frame) {
        Event::Task(held) | Event::Status(held) => wire::state(line.dialect(), held) == Some("canceled"),
        _ => false,
    };
    match heard.events[end..].iter().find(|frame| !is_last_word(frame)) {
        None => Verdict::pass(),
        Some(frame) => Verdict::fail(&heard.reply.sent, format!("after the end came {}", short(frame))),
    }
}
