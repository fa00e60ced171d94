//! Checks of the history length.

use serde_json::{Value, json};
use switchboard_a2a::{ErrorKind, Operation, Request, TaskId};

use crate::interface::TestedInterface;
use crate::reply::Reply;
use crate::verdict::{CheckResult, OrSkip, Verdict, applies_if, fail};

const NO_TASK: &str = "the message was not answered with a task";

async fn get_with_history(interface: &TestedInterface, history_length: Option<u32>) -> Option<Reply> {
    let id = interface.first_id().await?;
    let request = Request::Get { id: TaskId::from(id), history_length, tenant: interface.tenant() };
    Some(interface.call(Operation::GetTask, request).await)
}

fn history(reply: &Reply) -> Option<Vec<Value>> {
    reply.result().map(|task| task["history"].as_array().cloned().unwrap_or_default())
}

pub(crate) async fn none(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 does not tell 0 from absent")?;
    let reply = get_with_history(interface, Some(0)).await.or_skip(NO_TASK)?;
    match history(&reply) {
        None => reply.failure().about_task(interface.first_id().await.unwrap_or_default()),
        Some(history) if history.is_empty() => Ok(()),
        Some(history) => fail(&reply.sent, format!("a history of {} messages", history.len())),
    }
}

pub(crate) async fn last(interface: &TestedInterface) -> CheckResult {
    let whole = get_with_history(interface, None).await.or_skip(NO_TASK)?;
    let whole = history(&whole)
        .filter(|history| history.len() > 1)
        .or_skip("the history of the task has fewer than two messages")?;
    let reply = get_with_history(interface, Some(1)).await.or_skip(NO_TASK)?;
    let Some(one) = history(&reply) else {
        return reply.failure().about_task(interface.first_id().await.unwrap_or_default());
    };
    match one.as_slice() {
        // Fewer than asked for is allowed.
        [] => Ok(()),
        [message] if Some(&message["messageId"]) == whole.last().map(|last| &last["messageId"]) => Ok(()),
        [_] => reply.failure_because("this is not the last message"),
        more => fail(&reply.sent, format!("a history of {} messages", more.len())),
    }
}

pub(crate) async fn negative(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 leaves it open")?;
    let id = interface.first_id().await.or_skip(NO_TASK)?;
    let test_request = match interface.is_rpc() {
        true => interface.rpc("GetTask", json!({ "id": id, "historyLength": -1 })),
        false => interface.rest("GET", &format!("/tasks/{id}?historyLength=-1"), None),
    };
    let reply = interface.ask(&test_request).await;
    reply.expect_or_bad_request(interface.endpoint.binding, &[ErrorKind::InvalidParams]).about_task(id)
}
