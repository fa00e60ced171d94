//! Whether messages are answered as the specification says, and tasks can be read and canceled.

use std::time::Duration;

use serde_json::Value;
use switchboard_a2a::{ErrorKind, ListRequest, Operation, Request, TaskId};

use crate::answer::{DECLINED, Said};
use crate::checks::{Check, Group, Run, Severity};
use crate::line::Line;
use crate::verdict::Verdict;
use crate::wire;

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
        title: "a message with returnImmediately is answered at once",
        rule: "A2A 1.0 §3.2.2",
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
        id: "get-task",
        group: Group::Operations,
        title: "a task that was answered with can be read again",
        rule: "A2A 1.0 §3.1.3; 0.3 §7.3",
        severity: Severity::Must,
        fix: "keep tasks, and answer GetTask with the task itself",
        run: Run::Interface(|line| Box::pin(get_task(line))),
    },
    Check {
        id: "get-no-history",
        group: Group::Operations,
        title: "a history length of 0 leaves the history out",
        rule: "A2A 1.0 §3.2.4",
        severity: Severity::Must,
        fix: "tell 0 from absent, and give no more messages than are asked for",
        run: Run::Interface(|line| Box::pin(no_history(line))),
    },
    Check {
        id: "cancel-open",
        group: Group::Operations,
        title: "a task that has not ended can be canceled, or the refusal is -32002",
        rule: "A2A 1.0 §3.1.5; 0.3 §7.4",
        severity: Severity::Must,
        fix: "end the work and answer with the task, or refuse with TaskNotCancelableError",
        run: Run::Interface(|line| Box::pin(cancel_open(line))),
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
        (Said::Nothing, _) => nothing_yet(line),
        _ if first.reply.is_declined() => Verdict::not_applicable(DECLINED),
        _ => first.reply.complaint(),
    }
}

/// Agents think; that alone is no fault.
fn nothing_yet(line: &Line) -> Verdict {
    Verdict::not_applicable(format!("no answer came within {} s", line.subject.patience.as_secs()))
}

async fn waits(line: &Line) -> Verdict {
    if !line.is_v1() {
        return Verdict::not_applicable("version 0.3 leaves it open");
    }
    let Some(task) = line.first_task().await else {
        return Verdict::not_applicable("the message was not answered with a task");
    };
    let is_done = wire::has_ended(line.dialect(), task) || wire::is_paused(line.dialect(), task);
    if is_done { Verdict::pass() } else { line.first().await.reply.complaint() }
}

async fn returns_immediately(line: &Line) -> Verdict {
    if !line.is_v1() {
        return Verdict::not_applicable("version 0.3 does not know it");
    }
    if line.first_task().await.is_none() {
        return Verdict::not_applicable("the message was not answered with a task");
    }
    let reply = line.unwaited().await;
    let result = reply.result().map(|result| wire::sent(line.dialect(), result));
    match result {
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
    let Some(task) = reply.result() else { return reply.complaint() };
    if task["id"] != id {
        return reply.complaint_that("this is not the task that was asked for");
    }
    Verdict::of(&wire::task_problems(line.dialect(), task), &reply.sent)
}

async fn no_history(line: &Line) -> Verdict {
    if !line.is_v1() {
        return Verdict::not_applicable("version 0.3 does not tell 0 from absent");
    }
    let Some(id) = line.first_id().await else {
        return Verdict::not_applicable("the message was not answered with a task");
    };
    let request = Request::Get { id: TaskId::from(id), history_length: Some(0), tenant: line.tenant() };
    let reply = line.call(Operation::GetTask, request).await;
    let Some(task) = reply.result() else { return reply.complaint() };
    match task["history"].as_array() {
        Some(history) if !history.is_empty() => {
            Verdict::fail(&reply.sent, format!("a history of {} messages", history.len()))
        }
        _ => Verdict::pass(),
    }
}

async fn send_to_ended(line: &Line) -> Verdict {
    if !line.is_v1() {
        return Verdict::not_applicable("version 0.3 names no error for it");
    }
    let Some(id) = line.ended().await else {
        return Verdict::not_applicable("no task has ended");
    };
    let mut request = line.message(false);
    request.message.task_id = Some(TaskId::from(id));
    line.call(Operation::SendMessage, Request::Send(request)).await.expect(&[ErrorKind::UnsupportedOperation])
}

async fn cancel_open(line: &Line) -> Verdict {
    let first = line.first_task().await.filter(|task| !wire::has_ended(line.dialect(), task));
    let id = match first.and_then(|task| task["id"].as_str()) {
        Some(id) => Some(id.to_owned()),
        None if line.is_v1() => line.open_id().await,
        None => None,
    };
    let Some(id) = id else {
        return Verdict::not_applicable("no task was left open");
    };
    let reply = line.cancel(&id).await;
    match reply.result() {
        Some(task) if wire::state(line.dialect(), task).is_some() => Verdict::pass(),
        Some(_) => reply.complaint(),
        None if has_ended(line, &id).await => Verdict::not_applicable(ENDED),
        None => reply.expect(&[ErrorKind::TaskNotCancelable]),
    }
}

/// Why there is nothing to see of a task at work.
pub(crate) const ENDED: &str = "the task had ended already; a --text that takes a few seconds shows more";

/// Whether a task has ended by now.
pub(crate) async fn has_ended(line: &Line, id: &str) -> bool {
    line.get(id).await.result().is_some_and(|task| wire::has_ended(line.dialect(), task))
}

/// What became of the first message's task where the message was answered with an error.
pub(crate) async fn left_behind(line: &Line) -> Result<Value, &'static str> {
    let first = line.first().await;
    if !matches!(first.reply.said, Said::Refused(_)) {
        return Err("no message was answered with an error");
    }
    if !line.is_v1() {
        return Err("version 0.3 cannot list the task that is left");
    }
    // It may be on its way.
    tokio::time::sleep(Duration::from_secs(1).min(line.subject.patience)).await;
    let list = ListRequest { history_length: Some(10), tenant: line.tenant(), ..ListRequest::default() };
    let reply = line.call(Operation::ListTasks, Request::List(list)).await;
    let tasks = reply.result().and_then(|result| result["tasks"].as_array()).ok_or("the agent lists no tasks")?;
    let is_ours = |task: &&Value| {
        let mut history = task["history"].as_array().into_iter().flatten();
        history.any(|message| message["messageId"] == first.message_id.as_str())
    };
    tasks.iter().find(is_ours).cloned().ok_or("no task is left of it")
}

async fn failed_task_ends(line: &Line) -> Verdict {
    match left_behind(line).await {
        Err(why) => Verdict::not_applicable(why),
        Ok(task) if wire::has_ended(line.dialect(), &task) => Verdict::pass(),
        Ok(task) => {
            let state = wire::short(&task["status"]["state"]);
            let first = &line.first().await.reply;
            Verdict::fail(&first.sent, format!("a second after the answer its task is {state}; {}", first.seen))
        }
    }
}
