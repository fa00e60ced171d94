//! Whether messages are answered as the specification says, and tasks can be read and canceled.

pub(crate) mod cancel;
pub(crate) mod history;

use std::time::Duration;

use switchboard_a2a::{ErrorKind, Operation, TaskId};

use crate::answer::{DECLINED, Said};
use crate::checks::{Check, Group, Run, Severity};
use crate::errors::NOT_RPC;
use crate::line::{Line, Until};
use crate::verdict::Verdict;
use crate::wire::{self, Sent};

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "send-answered",
        group: Group::Operations,
        title: "a message is answered with either a task or a message",
        rule: "A2A 1.0 §3.1.1; 0.3 §7.1",
        severity: Severity::Must,
        fix: "answer SendMessage with {\"task\":…} or {\"message\":…}; in 0.3 with the object itself and its kind",
        run: Run::Interface(|line| Box::pin(answered(line))),
    },
    Check {
        id: "send-media-type",
        group: Group::Operations,
        title: "answers are served as JSON",
        rule: "A2A 1.0 §9.1, §11.1; 0.3 §3.2",
        severity: Severity::Must,
        fix: "send Content-Type: application/json, over REST application/a2a+json",
        run: Run::Interface(|line| Box::pin(media_type(line))),
    },
    Check {
        id: "send-envelope",
        group: Group::Operations,
        title: "over JSON-RPC, answers have the id of their request",
        rule: "JSON-RPC 2.0 §5; A2A 1.0 §9.3",
        severity: Severity::Must,
        fix: "answer with jsonrpc 2.0 and the id that was asked with",
        run: Run::Interface(|line| Box::pin(envelope(line))),
    },
    Check {
        id: "send-in-time",
        group: Group::Operations,
        title: "a message is answered in time, or its task goes on visibly",
        rule: "A2A 1.0 §3.1.1 leaves it open",
        severity: Severity::Quality,
        fix: "answer with a failed task when the agent's code panics or hangs; report progress where work takes long",
        run: Run::Interface(|line| Box::pin(in_time(line))),
    },
    Check {
        id: "send-waits",
        group: Group::Operations,
        title: "a message is answered when its task has ended or asks something",
        rule: "A2A 1.0 §3.2.2",
        severity: Severity::Must,
        fix: "do not answer before the task has ended or waits for its caller, unless returnImmediately is true",
        run: Run::Interface(|line| Box::pin(waits(line))),
    },
    Check {
        id: "send-returns-immediately",
        group: Group::Operations,
        title: "a message with returnImmediately, or with blocking false in 0.3, is answered at once",
        rule: "A2A 1.0 §3.2.2; 0.3 §7.1",
        severity: Severity::Must,
        fix: "answer as soon as the task exists, and go on working",
        run: Run::Interface(|line| Box::pin(returns_immediately(line))),
    },
    Check {
        id: "task-members",
        group: Group::Operations,
        title: "a task has its id, a state by its name in this version, and times in UTC",
        rule: "A2A 1.0 §4.1.1, §5.5, §5.6.1",
        severity: Severity::Must,
        fix: "write all required members, states as the version spells them, timestamps with Z",
        run: Run::Interface(|line| Box::pin(task_members(line))),
    },
    Check {
        id: "message-members",
        group: Group::Operations,
        title: "a message that is the answer has its id, the role of the agent and parts",
        rule: "A2A 1.0 §4.1.4, §5.7; 0.3 §6.4",
        severity: Severity::Must,
        fix: "write messageId, role and at least one part",
        run: Run::Interface(|line| Box::pin(message_members(line))),
    },
    Check {
        id: "get-task",
        group: Group::Operations,
        title: "a task that was answered with can be read again",
        rule: "A2A 1.0 §3.1.3; 0.3 §7.3",
        severity: Severity::Must,
        fix: "keep tasks, and answer GetTask with the task itself",
        run: Run::Interface(|line| Box::pin(get_task(line))),
    },
    Check {
        id: "task-kept",
        group: Group::Operations,
        title: "a task that has ended is kept for a while",
        rule: "A2A 1.0 §3.3.2 leaves it open",
        severity: Severity::Quality,
        fix: "keep ended tasks long enough for callers that were away to find out how they ended",
        run: Run::Interface(|line| Box::pin(kept(line))),
    },
    Check {
        id: "send-to-ended",
        group: Group::Operations,
        title: "a message to a task that has ended is refused with -32004",
        rule: "A2A 1.0 §3.1.1",
        severity: Severity::Must,
        fix: "answer UnsupportedOperationError; ended tasks do not begin again",
        run: Run::Interface(|line| Box::pin(send_to_ended(line))),
    },
    Check {
        id: "failed-task-ends",
        group: Group::Operations,
        title: "a task whose message was answered with an error does not stay at work",
        rule: "A2A 1.0 §4.1.3",
        severity: Severity::Quality,
        fix: "move the task to TASK_STATE_FAILED when the agent's code fails",
        run: Run::Interface(|line| Box::pin(failed_task_ends(line))),
    },
];

async fn answered(line: &Line) -> Verdict {
    let first = line.first().await;
    match (&first.reply.said, &first.sent) {
        (_, Some(Ok(_))) => Verdict::pass(),
        (_, Some(Err(problem))) => first.reply.complaint_that(problem),
        (Said::Nothing, _) if first.reply.is_late(line.subject.patience) => {
            Verdict::not_applicable(format!("no answer came within {} s", line.subject.patience.as_secs()))
        }
        _ if first.reply.is_declined() => Verdict::not_applicable(DECLINED),
        _ => match line.behind().await {
            Ok(task) => first.reply.complaint_that(&format!("its task is {}", wire::short(&task["status"]["state"]))),
            Err(_) => first.reply.complaint(),
        },
    }
}

async fn media_type(line: &Line) -> Verdict {
    let reply = &line.first().await.reply;
    if reply.result().is_none() {
        return Verdict::not_applicable("the message was not answered with a result");
    }
    match reply.media_type().as_str() {
        "application/json" => Verdict::pass(),
        "application/a2a+json" if line.is_v1() && !line.is_rpc() => Verdict::pass(),
        other => Verdict::fail(&reply.sent, format!("Content-Type: {other}")),
    }
}

/// How long a task is looked at that should have been answered with.
const LOOK: Duration = Duration::from_secs(1);

/// An agent that thinks and one that hangs are told apart by what can be seen of the task meanwhile.
async fn in_time(line: &Line) -> Verdict {
    let first = &line.first().await.reply;
    if !first.is_late(line.subject.patience) {
        return match first.said {
            Said::Nothing => Verdict::not_applicable("the agent could not be asked"),
            _ => Verdict::pass(),
        };
    }
    let waited = format!("no answer within {} s", line.subject.patience.as_secs());
    let task = match line.behind().await {
        Ok(task) => task,
        // Version 0.3 has no way to look for it.
        Err(why) if !line.is_v1() => return Verdict::not_applicable(format!("{waited}; {why}")),
        Err(why) => return Verdict::fail(&first.sent, format!("{waited}; {why}")),
    };
    let id = task["id"].as_str().unwrap_or_default();
    let heard = if line.subject.can("streaming") { Some(line.subscribe(id, Until::First).await) } else { None };
    tokio::time::sleep(LOOK).await;
    let now = line.get(id).await;
    let state = now.result().and_then(|task| wire::state(line.dialect(), task)).unwrap_or("not to be read");
    // The clock of the agent tells how long it has been silent.
    let is_changed = now.result().is_some_and(|now| now["status"] != task["status"] || line.has_ended(now));
    if is_changed {
        return Verdict::not_applicable(format!("{waited}, but its task went on to {state} meanwhile"));
    }
    let subscribed = match heard {
        None => "",
        Some(heard) if heard.is_stream() && !heard.events.is_empty() => ", and can be subscribed to",
        Some(_) => ", and cannot be subscribed to, as if nobody worked on it any more",
    };
    let since = task["status"]["timestamp"].as_str().map(|at| format!(" since {at}")).unwrap_or_default();
    Verdict::fail(&first.sent, format!("{waited}; its task is {state}{since}{subscribed}"))
}

async fn waits(line: &Line) -> Verdict {
    if !line.is_v1() {
        return Verdict::not_applicable("version 0.3 leaves it open");
    }
    let Some(task) = line.first_task().await else {
        return Verdict::not_applicable("the message was not answered with a task");
    };
    if line.is_settled(task) { Verdict::pass() } else { line.first().await.reply.complaint() }
}

async fn returns_immediately(line: &Line) -> Verdict {
    if line.first_task().await.is_none() {
        return Verdict::not_applicable("the message was not answered with a task");
    }
    let reply = line.unwaited().await;
    let result = reply.result().map(|result| wire::sent(line.dialect(), result));
    // An agent that is far away takes its time with everything.
    let distance = line.get_nobodys().await.took;
    let (waited, took) = (line.first().await.reply.took.saturating_sub(distance), reply.took.saturating_sub(distance));
    let has_waited = waited > Duration::from_secs(1) && took > waited / 2;
    match result {
        // Version 0.3 leaves open whether an agent can do it.
        Some(Ok(_)) if has_waited && line.is_v1() => {
            let (waited, took) = (waited.as_secs_f64(), took.as_secs_f64());
            Verdict::fail(&reply.sent, format!("it took {took:.1} s, and {waited:.1} s without returnImmediately"))
        }
        Some(Ok(_)) => Verdict::pass(),
        Some(Err(problem)) => reply.complaint_that(&problem),
        None => reply.complaint(),
    }
}

async fn task_members(line: &Line) -> Verdict {
    let Some(task) = line.first_task().await else {
        return Verdict::not_applicable("the message was not answered with a task");
    };
    Verdict::of(&wire::task_problems(line.dialect(), task), &line.first().await.reply.sent)
}

async fn get_task(line: &Line) -> Verdict {
    let Some(id) = line.first_id().await else {
        return Verdict::not_applicable("the message was not answered with a task");
    };
    let reply = line.get(id).await;
    let Some(task) = reply.result() else { return reply.complaint().about(id) };
    if task["id"] != id {
        return reply.complaint_that("this is not the task that was asked for");
    }
    Verdict::of(&wire::task_problems(line.dialect(), task), &reply.sent)
}

async fn kept(line: &Line) -> Verdict {
    let Some(task) = line.first_task().await.filter(|task| line.has_ended(task)) else {
        return Verdict::not_applicable("the message was not answered with a task that has ended");
    };
    let reply = line.get(task["id"].as_str().unwrap_or_default()).await;
    if reply.is_refused_with(ErrorKind::TaskNotFound) { reply.complaint() } else { Verdict::pass() }
}

async fn message_members(line: &Line) -> Verdict {
    let first = line.first().await;
    match &first.sent {
        Some(Ok(Sent::Message(message))) => {
            Verdict::of(&wire::message_problems(line.dialect(), message), &first.reply.sent)
        }
        _ => Verdict::not_applicable("the message was not answered with a message"),
    }
}

async fn envelope(line: &Line) -> Verdict {
    if !line.is_rpc() {
        return Verdict::not_applicable(NOT_RPC);
    }
    let reply = &line.first().await.reply;
    match reply.json.as_ref().filter(|_| matches!(reply.said, Said::Result(_) | Said::Refused(_))) {
        None => Verdict::not_applicable("the message was not answered in the protocol"),
        Some(json) if json["id"] == 1 => Verdict::pass(),
        Some(json) => Verdict::fail(&reply.sent, format!("id is {}, and 1 was asked with", wire::short(&json["id"]))),
    }
}

async fn send_to_ended(line: &Line) -> Verdict {
    if !line.is_v1() {
        return Verdict::not_applicable("version 0.3 names no error for it");
    }
    let Some(id) = line.ended().await else {
        return Verdict::not_applicable("no task has ended");
    };
    let reply = line.call(Operation::SendMessage, line.message_to(TaskId::from(id))).await;
    reply.expect(&[ErrorKind::UnsupportedOperation]).about(id)
}

/// Why there is nothing to see of a task at work.
pub(crate) const ENDED: &str = "the task had ended already; a --text that takes a few seconds shows more";

async fn failed_task_ends(line: &Line) -> Verdict {
    let first = &line.first().await.reply;
    match line.behind().await {
        _ if matches!(first.said, Said::Nothing) => Verdict::not_applicable("no message was answered with an error"),
        Err(why) => Verdict::not_applicable(why),
        Ok(task) if line.has_ended(task) => Verdict::pass(),
        Ok(task) => {
            let state = wire::short(&task["status"]["state"]);
            Verdict::fail(&first.sent, format!("a second after the answer its task is {state}; {}", first.seen))
        }
    }
}
