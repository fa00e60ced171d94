//! Whether callers get as much of a task's history as they ask for, and no more.

use serde_json::{Value, json};
use switchboard_a2a::{ErrorKind, Operation, Request, TaskId};

use crate::answer::Reply;
use crate::checks::{Check, Group, Run, Severity};
use crate::line::Line;
use crate::verdict::Verdict;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "get-no-history",
        group: Group::Operations,
        title: "a history length of 0 leaves the history out",
        rule: "A2A 1.0 §3.2.4",
        severity: Severity::Must,
        fix: "tell 0 from absent, and give no more messages than are asked for",
        run: Run::Interface(|line| Box::pin(none(line))),
    },
    Check {
        id: "get-history-length",
        group: Group::Operations,
        title: "a history length of 1 gives the last message and no other",
        rule: "A2A 1.0 §3.2.4; 0.3 §7.3.1",
        severity: Severity::Must,
        fix: "give the most recent messages, and no more than are asked for",
        run: Run::Interface(|line| Box::pin(last(line))),
    },
    Check {
        id: "get-history-negative",
        group: Group::Operations,
        title: "a history length below 0 is refused with -32602",
        rule: "A2A 1.0 §3.2.4, §6.5",
        severity: Severity::Should,
        fix: "answer InvalidParamsError; 400 over REST",
        run: Run::Interface(|line| Box::pin(negative(line))),
    },
];

const NO_TASK: &str = "the message was not answered with a task";

async fn got(line: &Line, history_length: Option<u32>) -> Option<Reply> {
    let id = line.first_id().await?;
    let request = Request::Get { id: TaskId::from(id), history_length, tenant: line.tenant() };
    Some(line.call(Operation::GetTask, request).await)
}

fn history(reply: &Reply) -> Option<Vec<Value>> {
    reply.result().map(|task| task["history"].as_array().cloned().unwrap_or_default())
}

async fn none(line: &Line) -> Verdict {
    if !line.is_v1() {
        return Verdict::not_applicable("version 0.3 does not tell 0 from absent");
    }
    let Some(reply) = got(line, Some(0)).await else {
        return Verdict::not_applicable(NO_TASK);
    };
    match history(&reply) {
        None => reply.complaint().about(line.first_id().await.unwrap_or_default()),
        Some(history) if history.is_empty() => Verdict::pass(),
        Some(history) => Verdict::fail(&reply.sent, format!("a history of {} messages", history.len())),
    }
}

async fn last(line: &Line) -> Verdict {
    let Some(whole) = got(line, None).await else {
        return Verdict::not_applicable(NO_TASK);
    };
    let Some(whole) = history(&whole).filter(|history| history.len() > 1) else {
        return Verdict::not_applicable("the history of the task has fewer than two messages");
    };
    let Some(reply) = got(line, Some(1)).await else {
        return Verdict::not_applicable(NO_TASK);
    };
    let Some(one) = history(&reply) else {
        return reply.complaint().about(line.first_id().await.unwrap_or_default());
    };
    match one.as_slice() {
        // Fewer than asked for is allowed.
        [] => Verdict::pass(),
        [message] if Some(&message["messageId"]) == whole.last().map(|last| &last["messageId"]) => Verdict::pass(),
        [_] => reply.complaint_that("this is not the last message"),
        more => Verdict::fail(&reply.sent, format!("a history of {} messages", more.len())),
    }
}

async fn negative(line: &Line) -> Verdict {
    if !line.is_v1() {
        return Verdict::not_applicable("version 0.3 leaves it open");
    }
    let Some(id) = line.first_id().await else {
        return Verdict::not_applicable(NO_TASK);
    };
    let question = match line.is_rpc() {
        true => line.rpc("GetTask", json!({ "id": id, "historyLength": -1 })),
        false => line.rest("GET", &format!("/tasks/{id}?historyLength=-1"), None),
    };
    let reply = line.ask(&question).await;
    reply.expect_or_bad_request(line.interface.binding, &[ErrorKind::InvalidParams]).about(id)
}
