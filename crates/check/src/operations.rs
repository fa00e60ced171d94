//! Checks of SendMessage and GetTask.

pub(crate) mod cancel;
pub(crate) mod history;

use std::time::Duration;

use switchboard_a2a::{ErrorKind, Operation, TaskId};

use crate::errors::NOT_RPC;
use crate::interface::{ReadUntil, TestedInterface};
use crate::reply::{DECLINED, ReplyContent};
use crate::verdict::{CheckResult, OrSkip, Verdict, applies_if, fail, no_problems, skip};
use crate::wire::{self, SendResult};

pub(crate) async fn answered(interface: &TestedInterface) -> CheckResult {
    let first = interface.first().await;
    match (&first.reply.content, &first.sent) {
        (_, Some(Ok(_))) => Ok(()),
        (_, Some(Err(problem))) => first.reply.failure_because(problem),
        (ReplyContent::Missing, _) if first.reply.is_late(interface.agent.patience) => {
            skip(format!("no answer came within {} s", interface.agent.patience.as_secs()))
        }
        _ if first.reply.is_declined() => skip(DECLINED),
        _ => match interface.unanswered_task().await {
            Ok(task) => first.reply.failure_because(&format!("its task is {}", wire::short(&task["status"]["state"]))),
            Err(_) => first.reply.failure(),
        },
    }
}

pub(crate) async fn media_type(interface: &TestedInterface) -> CheckResult {
    let reply = &interface.first().await.reply;
    applies_if(reply.result().is_some(), "the message was not answered with a result")?;
    match reply.media_type().as_str() {
        "application/json" => Ok(()),
        "application/a2a+json" if interface.is_v1() && !interface.is_rpc() => Ok(()),
        other => fail(&reply.sent, format!("Content-Type: {other}")),
    }
}

/// How long the task of an unanswered message is watched.
const LOOK: Duration = Duration::from_secs(1);

/// A slow agent and one that hangs are told apart by whether the task changes meanwhile.
pub(crate) async fn in_time(interface: &TestedInterface) -> CheckResult {
    let first = &interface.first().await.reply;
    if !first.is_late(interface.agent.patience) {
        return match first.content {
            ReplyContent::Missing => skip("the agent could not be asked"),
            _ => Ok(()),
        };
    }
    let waited = format!("no answer within {} s", interface.agent.patience.as_secs());
    let task = match interface.unanswered_task().await {
        Ok(task) => task,
        // Version 0.3 has no list to find it in.
        Err(why) if !interface.is_v1() => return skip(format!("{waited}; {why}")),
        Err(why) => return fail(&first.sent, format!("{waited}; {why}")),
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
    let is_changed = now.result().is_some_and(|now| now["status"] != task["status"] || interface.has_ended(now));
    if is_changed {
        return skip(format!("{waited}, but its task went on to {state} meanwhile"));
    }
    let subscribed = match recorded {
        None => "",
        Some(recorded) if recorded.is_stream() && !recorded.events.is_empty() => ", and can be subscribed to",
        Some(_) => ", and cannot be subscribed to, as if no agent worked on it any more",
    };
    let since = task["status"]["timestamp"].as_str().map(|at| format!(" since {at}")).unwrap_or_default();
    fail(&first.sent, format!("{waited}; its task is {state}{since}{subscribed}"))
}

pub(crate) async fn waits(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 leaves it open")?;
    let task = interface.first_task().await.or_skip("the message was not answered with a task")?;
    if interface.is_settled(task) { Ok(()) } else { interface.first().await.reply.failure() }
}

pub(crate) async fn is_non_blocking(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.first_task().await.is_some(), "the message was not answered with a task")?;
    let reply = interface.non_blocking_reply().await;
    let result = reply.result().map(|result| wire::sent(interface.dialect(), result));
    // The round trip of any request is not the agent's time.
    let distance = interface.get_unknown_task().await.took;
    let (waited, took) =
        (interface.first().await.reply.took.saturating_sub(distance), reply.took.saturating_sub(distance));
    let has_waited = waited > Duration::from_secs(1) && took > waited / 2;
    match result {
        // Version 0.3 leaves it open.
        Some(Ok(_)) if has_waited && interface.is_v1() => {
            let (waited, took) = (waited.as_secs_f64(), took.as_secs_f64());
            fail(&reply.sent, format!("it took {took:.1} s, and {waited:.1} s without returnImmediately"))
        }
        Some(Ok(_)) => Ok(()),
        Some(Err(problem)) => reply.failure_because(&problem),
        None => reply.failure(),
    }
}

pub(crate) async fn task_members(interface: &TestedInterface) -> CheckResult {
    let task = interface.first_task().await.or_skip("the message was not answered with a task")?;
    no_problems(wire::task_problems(interface.dialect(), task), &interface.first().await.reply.sent)
}

pub(crate) async fn get_task(interface: &TestedInterface) -> CheckResult {
    let id = interface.first_id().await.or_skip("the message was not answered with a task")?;
    let reply = interface.get(id).await;
    let Some(task) = reply.result() else { return reply.failure().about_task(id) };
    if task["id"] != id {
        return reply.failure_because("this is not the task that was asked for");
    }
    no_problems(wire::task_problems(interface.dialect(), task), &reply.sent)
}

pub(crate) async fn kept(interface: &TestedInterface) -> CheckResult {
    let task = interface
        .first_task()
        .await
        .filter(|task| interface.has_ended(task))
        .or_skip("the message was not answered with a task that has ended")?;
    let reply = interface.get(task["id"].as_str().unwrap_or_default()).await;
    if reply.is_refused_with(ErrorKind::TaskNotFound) { reply.failure() } else { Ok(()) }
}

pub(crate) async fn message_members(interface: &TestedInterface) -> CheckResult {
    let first = interface.first().await;
    match &first.sent {
        Some(Ok(SendResult::Message(message))) => {
            no_problems(wire::message_problems(interface.dialect(), message), &first.reply.sent)
        }
        _ => skip("the message was not answered with a message"),
    }
}

pub(crate) async fn envelope(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_rpc(), NOT_RPC)?;
    let reply = &interface.first().await.reply;
    match reply.json.as_ref().filter(|_| matches!(reply.content, ReplyContent::Result(_) | ReplyContent::Error(_))) {
        None => skip("the message was not answered in the protocol"),
        Some(json) if json["id"] == 1 => Ok(()),
        Some(json) => fail(&reply.sent, format!("id is {}, and 1 was asked with", wire::short(&json["id"]))),
    }
}

pub(crate) async fn send_to_ended(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 names no error for it")?;
    let id = interface.ended().await.or_skip("no task has ended")?;
    let reply = interface.call(Operation::SendMessage, interface.message_to(TaskId::from(id))).await;
    reply.expect(&[ErrorKind::UnsupportedOperation]).about_task(id)
}

/// Why no running task could be observed.
pub(crate) const ENDED: &str = "the task had ended already; a --text that takes a few seconds shows more";

pub(crate) async fn failed_task(interface: &TestedInterface) -> CheckResult {
    let first = &interface.first().await.reply;
    match interface.unanswered_task().await {
        _ if matches!(first.content, ReplyContent::Missing) => skip("no message was answered with an error"),
        Err(why) => skip(why),
        Ok(task) if interface.has_ended(task) => Ok(()),
        Ok(task) => {
            let state = wire::short(&task["status"]["state"]);
            fail(&first.sent, format!("a second after the answer its task is {state}; {}", first.seen))
        }
    }
}
