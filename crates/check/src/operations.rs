//! Whether messages are answered as the specification says, and tasks can be read and canceled.

pub(crate) mod cancel;
pub(crate) mod history;

use std::time::Duration;

use switchboard_a2a::{ErrorKind, Operation, TaskId};

use crate::checks::{Check, Group, Run, Severity};
use crate::errors::NOT_RPC;
use crate::interface::{ReadUntil, TestedInterface};
use crate::reply::{DECLINED, ReplyContent};
use crate::verdict::Verdict;
use crate::wire::{self, SendResult};

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "send-answered",
        group: Group::Operations,
        title: "a message is answered with either a task or a message",
        rule: "A2A 1.0 §3.1.1; 0.3 §7.1",
        severity: Severity::Must,
        fix: "answer SendMessage with {\"task\":…} or {\"message\":…}; in 0.3 with the object itself and its kind",
        run: Run::Interface(|interface| Box::pin(answered(interface))),
    },
    Check {
        id: "send-media-type",
        group: Group::Operations,
        title: "answers are served as JSON",
        rule: "A2A 1.0 §9.1, §11.1; 0.3 §3.2",
        severity: Severity::Must,
        fix: "send Content-Type: application/json, over REST application/a2a+json",
        run: Run::Interface(|interface| Box::pin(media_type(interface))),
    },
    Check {
        id: "send-envelope",
        group: Group::Operations,
        title: "over JSON-RPC, answers have the id of their request",
        rule: "JSON-RPC 2.0 §5; A2A 1.0 §9.3",
        severity: Severity::Must,
        fix: "answer with jsonrpc 2.0 and the id that was asked with",
        run: Run::Interface(|interface| Box::pin(envelope(interface))),
    },
    Check {
        id: "send-in-time",
        group: Group::Operations,
        title: "a message is answered in time, or its task goes on visibly",
        rule: "A2A 1.0 §3.1.1 leaves it open",
        severity: Severity::Quality,
        fix: "answer with a failed task when the agent's code panics or hangs; report progress where work takes long",
        run: Run::Interface(|interface| Box::pin(in_time(interface))),
    },
    Check {
        id: "send-waits",
        group: Group::Operations,
        title: "a message is answered when its task has ended or asks something",
        rule: "A2A 1.0 §3.2.2",
        severity: Severity::Must,
        fix: "do not answer before the task has ended or waits for its caller, unless returnImmediately is true",
        run: Run::Interface(|interface| Box::pin(waits(interface))),
    },
    Check {
        id: "send-returns-immediately",
        group: Group::Operations,
        title: "a message with returnImmediately, or with blocking false in 0.3, is answered at once",
        rule: "A2A 1.0 §3.2.2; 0.3 §7.1",
        severity: Severity::Must,
        fix: "answer as soon as the task exists, and go on working",
        run: Run::Interface(|interface| Box::pin(returns_immediately(interface))),
    },
    Check {
        id: "task-members",
        group: Group::Operations,
        title: "a task has its id, a state by its name in this version, and times in UTC",
        rule: "A2A 1.0 §4.1.1, §5.5, §5.6.1",
        severity: Severity::Must,
        fix: "write all required members, states as the version spells them, timestamps with Z",
        run: Run::Interface(|interface| Box::pin(task_members(interface))),
    },
    Check {
        id: "message-members",
        group: Group::Operations,
        title: "a message that is the answer has its id, the role of the agent and parts",
        rule: "A2A 1.0 §4.1.4, §5.7; 0.3 §6.4",
        severity: Severity::Must,
        fix: "write messageId, role and at least one part",
        run: Run::Interface(|interface| Box::pin(message_members(interface))),
    },
    Check {
        id: "get-task",
        group: Group::Operations,
        title: "a task that was answered with can be read again",
        rule: "A2A 1.0 §3.1.3; 0.3 §7.3",
        severity: Severity::Must,
        fix: "keep tasks, and answer GetTask with the task itself",
        run: Run::Interface(|interface| Box::pin(get_task(interface))),
    },
    Check {
        id: "task-kept",
        group: Group::Operations,
        title: "a task that has ended is kept for a while",
        rule: "A2A 1.0 §3.3.2 leaves it open",
        severity: Severity::Quality,
        fix: "keep ended tasks long enough for callers that were away to find out how they ended",
        run: Run::Interface(|interface| Box::pin(kept(interface))),
    },
    Check {
        id: "send-to-ended",
        group: Group::Operations,
        title: "a message to a task that has ended is refused with -32004",
        rule: "A2A 1.0 §3.1.1",
        severity: Severity::Must,
        fix: "answer UnsupportedOperationError; ended tasks do not begin again",
        run: Run::Interface(|interface| Box::pin(send_to_ended(interface))),
    },
    Check {
        id: "failed-task-ends",
        group: Group::Operations,
        title: "a task whose message was answered with an error does not stay at work",
        rule: "A2A 1.0 §4.1.3",
        severity: Severity::Quality,
        fix: "move the task to TASK_STATE_FAILED when the agent's code fails",
        run: Run::Interface(|interface| Box::pin(failed_task_ends(interface))),
    },
];

async fn answered(interface: &TestedInterface) -> Verdict {
    let first = interface.first().await;
    match (&first.reply.content, &first.sent) {
        (_, Some(Ok(_))) => Verdict::pass(),
        (_, Some(Err(problem))) => first.reply.failure_because(problem),
        (ReplyContent::Missing, _) if first.reply.is_late(interface.agent.patience) => {
            Verdict::not_applicable(format!("no answer came within {} s", interface.agent.patience.as_secs()))
        }
        _ if first.reply.is_declined() => Verdict::not_applicable(DECLINED),
        _ => match interface.unanswered_task().await {
            Ok(task) => first.reply.failure_because(&format!("its task is {}", wire::short(&task["status"]["state"]))),
            Err(_) => first.reply.failure(),
        },
    }
}

async fn media_type(interface: &TestedInterface) -> Verdict {
    let reply = &interface.first().await.reply;
    if reply.result().is_none() {
        return Verdict::not_applicable("the message was not answered with a result");
    }
    match reply.media_type().as_str() {
        "application/json" => Verdict::pass(),
        "application/a2a+json" if interface.is_v1() && !interface.is_rpc() => Verdict::pass(),
        other => Verdict::fail(&reply.sent, format!("Content-Type: {other}")),
    }
}

/// How long a task is looked at that should have been answered with.
const LOOK: Duration = Duration::from_secs(1);

/// An agent that thinks and one that hangs are told apart by what can be seen of the task meanwhile.
async fn in_time(interface: &TestedInterface) -> Verdict {
    let first = &interface.first().await.reply;
    if !first.is_late(interface.agent.patience) {
        return match first.content {
            ReplyContent::Missing => Verdict::not_applicable("the agent could not be asked"),
            _ => Verdict::pass(),
        };
    }
    let waited = format!("no answer within {} s", interface.agent.patience.as_secs());
    let task = match interface.unanswered_task().await {
        Ok(task) => task,
        // Version 0.3 has no way to look for it.
        Err(why) if !interface.is_v1() => return Verdict::not_applicable(format!("{waited}; {why}")),
        Err(why) => return Verdict::fail(&first.sent, format!("{waited}; {why}")),
    };
    let id = task["id"].as_str().unwrap_or_default();
    let recorded = if interface.agent.has_capability("streaming") {
        Some(interface.subscribe(id, ReadUntil::First).await)
    } else {
        None
    };
    tokio::time::sleep(LOOK).await;
    let now = interface.get(id).await;
    let state = now.result().and_then(|task| wire::state(interface.dialect(), task)).unwrap_or("not to be read");
    // The clock of the agent tells how long it has been silent.
    let is_changed = now.result().is_some_and(|now| now["status"] != task["status"] || interface.has_ended(now));
    if is_changed {
        return Verdict::not_applicable(format!("{waited}, but its task went on to {state} meanwhile"));
    }
    let subscribed = match recorded {
        None => "",
        Some(recorded) if recorded.is_stream() && !recorded.events.is_empty() => ", and can be subscribed to",
        Some(_) => ", and cannot be subscribed to, as if nobody worked on it any more",
    };
    let since = task["status"]["timestamp"].as_str().map(|at| format!(" since {at}")).unwrap_or_default();
    Verdict::fail(&first.sent, format!("{waited}; its task is {state}{since}{subscribed}"))
}

async fn waits(interface: &TestedInterface) -> Verdict {
    if !interface.is_v1() {
        return Verdict::not_applicable("version 0.3 leaves it open");
    }
    let Some(task) = interface.first_task().await else {
        return Verdict::not_applicable("the message was not answered with a task");
    };
    if interface.is_settled(task) { Verdict::pass() } else { interface.first().await.reply.failure() }
}

async fn returns_immediately(interface: &TestedInterface) -> Verdict {
    if interface.first_task().await.is_none() {
        return Verdict::not_applicable("the message was not answered with a task");
    }
    let reply = interface.non_blocking_reply().await;
    let result = reply.result().map(|result| wire::sent(interface.dialect(), result));
    // An agent that is far away takes its time with everything.
    let distance = interface.get_unknown_task().await.took;
    let (waited, took) =
        (interface.first().await.reply.took.saturating_sub(distance), reply.took.saturating_sub(distance));
    let has_waited = waited > Duration::from_secs(1) && took > waited / 2;
    match result {
        // Version 0.3 leaves open whether an agent can do it.
        Some(Ok(_)) if has_waited && interface.is_v1() => {
            let (waited, took) = (waited.as_secs_f64(), took.as_secs_f64());
            Verdict::fail(&reply.sent, format!("it took {took:.1} s, and {waited:.1} s without returnImmediately"))
        }
        Some(Ok(_)) => Verdict::pass(),
        Some(Err(problem)) => reply.failure_because(&problem),
        None => reply.failure(),
    }
}

async fn task_members(interface: &TestedInterface) -> Verdict {
    let Some(task) = interface.first_task().await else {
        return Verdict::not_applicable("the message was not answered with a task");
    };
    Verdict::of(&wire::task_problems(interface.dialect(), task), &interface.first().await.reply.sent)
}

async fn get_task(interface: &TestedInterface) -> Verdict {
    let Some(id) = interface.first_id().await else {
        return Verdict::not_applicable("the message was not answered with a task");
    };
    let reply = interface.get(id).await;
    let Some(task) = reply.result() else { return reply.failure().about_task(id) };
    if task["id"] != id {
        return reply.failure_because("this is not the task that was asked for");
    }
    Verdict::of(&wire::task_problems(interface.dialect(), task), &reply.sent)
}

async fn kept(interface: &TestedInterface) -> Verdict {
    let Some(task) = interface.first_task().await.filter(|task| interface.has_ended(task)) else {
        return Verdict::not_applicable("the message was not answered with a task that has ended");
    };
    let reply = interface.get(task["id"].as_str().unwrap_or_default()).await;
    if reply.is_refused_with(ErrorKind::TaskNotFound) { reply.failure() } else { Verdict::pass() }
}

async fn message_members(interface: &TestedInterface) -> Verdict {
    let first = interface.first().await;
    match &first.sent {
        Some(Ok(SendResult::Message(message))) => {
            Verdict::of(&wire::message_problems(interface.dialect(), message), &first.reply.sent)
        }
        _ => Verdict::not_applicable("the message was not answered with a message"),
    }
}

async fn envelope(interface: &TestedInterface) -> Verdict {
    if !interface.is_rpc() {
        return Verdict::not_applicable(NOT_RPC);
    }
    let reply = &interface.first().await.reply;
    match reply.json.as_ref().filter(|_| matches!(reply.content, ReplyContent::Result(_) | ReplyContent::Error(_))) {
        None => Verdict::not_applicable("the message was not answered in the protocol"),
        Some(json) if json["id"] == 1 => Verdict::pass(),
        Some(json) => Verdict::fail(&reply.sent, format!("id is {}, and 1 was asked with", wire::short(&json["id"]))),
    }
}

async fn send_to_ended(interface: &TestedInterface) -> Verdict {
    if !interface.is_v1() {
        return Verdict::not_applicable("version 0.3 names no error for it");
    }
    let Some(id) = interface.ended().await else {
        return Verdict::not_applicable("no task has ended");
    };
    let reply = interface.call(Operation::SendMessage, interface.message_to(TaskId::from(id))).await;
    reply.expect(&[ErrorKind::UnsupportedOperation]).about_task(id)
}

/// Why there is nothing to see of a task at work.
pub(crate) const ENDED: &str = "the task had ended already; a --text that takes a few seconds shows more";

async fn failed_task_ends(interface: &TestedInterface) -> Verdict {
    let first = &interface.first().await.reply;
    match interface.unanswered_task().await {
        _ if matches!(first.content, ReplyContent::Missing) => {
            Verdict::not_applicable("no message was answered with an error")
        }
        Err(why) => Verdict::not_applicable(why),
        Ok(task) if interface.has_ended(task) => Verdict::pass(),
        Ok(task) => {
            let state = wire::short(&task["status"]["state"]);
            Verdict::fail(&first.sent, format!("a second after the answer its task is {state}; {}", first.seen))
        }
    }
}
