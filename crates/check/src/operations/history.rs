//! Whether callers get as much of a task's history as they ask for, and no more.

use serde_json::{Value, json};
use switchboard_a2a::{ErrorKind, Operation, Request, TaskId};

use crate::checks::{Check, Group, Run, Severity};
use crate::interface::TestedInterface;
use crate::reply::Reply;
use crate::verdict::Verdict;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "get-no-history",
        group: Group::Operations,
        title: "a history length of 0 leaves the history out",
        rule: "A2A 1.0 §3.2.4",
        severity: Severity::Must,
        fix: "tell 0 from absent, and give no more messages than are asked for",
        run: Run::Interface(|interface| Box::pin(none(interface))),
    },
    Check {
        id: "get-history-length",
        group: Group::Operations,
        title: "a history length of 1 gives the last message and no other",
        rule: "A2A 1.0 §3.2.4; 0.3 §7.3.1",
        severity: Severity::Must,
        fix: "give the most recent messages, and no more than are asked for",
        run: Run::Interface(|interface| Box::pin(last(interface))),
    },
    Check {
        id: "get-history-negative",
        group: Group::Operations,
        title: "a history length below 0 is refused with -32602",
        rule: "A2A 1.0 §3.2.4, §6.5",
        severity: Severity::Should,
        fix: "answer InvalidParamsError; 400 over REST",
        run: Run::Interface(|interface| Box::pin(negative(interface))),
    },
];

const NO_TASK: &str = "the message was not answered with a task";

async fn got(interface: &TestedInterface, history_length: Option<u32>) -> Option<Reply> {
    let id = interface.first_id().await?;
    let request = Request::Get { id: TaskId::from(id), history_length, tenant: interface.tenant() };
    Some(interface.call(Operation::GetTask, request).await)
}

fn history(reply: &Reply) -> Option<Vec<Value>> {
    reply.result().map(|task| task["history"].as_array().cloned().unwrap_or_default())
}

async fn none(interface: &TestedInterface) -> Verdict {
    if !interface.is_v1() {
        return Verdict::not_applicable("version 0.3 does not tell 0 from absent");
    }
    let Some(reply) = got(interface, Some(0)).await else {
        return Verdict::not_applicable(NO_TASK);
    };
    match history(&reply) {
        None => reply.failure().about_task(interface.first_id().await.unwrap_or_default()),
        Some(history) if history.is_empty() => Verdict::pass(),
        Some(history) => Verdict::fail(&reply.sent, format!("a history of {} messages", history.len())),
    }
}

async fn last(interface: &TestedInterface) -> Verdict {
    let Some(whole) = got(interface, None).await else {
        return Verdict::not_applicable(NO_TASK);
    };
    let Some(whole) = history(&whole).filter(|history| history.len() > 1) else {
        return Verdict::not_applicable("the history of the task has fewer than two messages");
    };
    let Some(reply) = got(interface, Some(1)).await else {
        return Verdict::not_applicable(NO_TASK);
    };
    let Some(one) = history(&reply) else {
        return reply.failure().about_task(interface.first_id().await.unwrap_or_default());
    };
    match one.as_slice() {
        // Fewer than asked for is allowed.
        [] => Verdict::pass(),
        [message] if Some(&message["messageId"]) == whole.last().map(|last| &last["messageId"]) => Verdict::pass(),
        [_] => reply.failure_because("this is not the last message"),
        more => Verdict::fail(&reply.sent, format!("a history of {} messages", more.len())),
    }
}

async fn negative(interface: &TestedInterface) -> Verdict {
    if !interface.is_v1() {
        return Verdict::not_applicable("version 0.3 leaves it open");
    }
    let Some(id) = interface.first_id().await else {
        return Verdict::not_applicable(NO_TASK);
    };
    let test_request = match interface.is_rpc() {
        true => interface.rpc("GetTask", json!({ "id": id, "historyLength": -1 })),
        false => interface.rest("GET", &format!("/tasks/{id}?historyLength=-1"), None),
    };
    let reply = interface.ask(&test_request).await;
    reply.expect_or_bad_request(interface.endpoint.binding, &[ErrorKind::InvalidParams]).about_task(id)
}
