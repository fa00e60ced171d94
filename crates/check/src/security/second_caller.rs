//! Checks that a second authenticated caller cannot reach the tasks of the first, nor learn that they exist: the
//! refusals must be those for tasks that do not exist.

use switchboard_a2a::{ErrorKind, ListRequest, Operation, Request, TaskId};

use crate::interface::{ReadUntil, TestedInterface};
use crate::reply::{Reply, ReplyContent};
use crate::request::{Caller, TestRequest};
use crate::verdict::{CheckResult, OrSkip, applies_if, fail, skip};
use crate::wire::{entries, short};

/// A task of the first caller, if a second caller is configured and accepted.
async fn task(interface: &TestedInterface) -> CheckResult<&str> {
    interface.agent.second_caller()?;
    let test_request = interface.harmless_request().or_else(skip)?;
    let reply = interface.ask(&TestRequest { caller: Caller::Second, ..test_request }).await;
    applies_if(!matches!(reply.status, 401 | 403), "the key of the second caller is not accepted")?;
    interface.first_id().await.or_skip("the agent has made no task")
}

/// Passes if the operation on the task is refused to the second caller.
async fn is_refused(
    interface: &TestedInterface,
    operation: Operation,
    request: impl FnOnce(TaskId) -> Request,
) -> CheckResult {
    let id = task(interface).await?;
    refused_as_unknown(&interface.call_as(Caller::Second, operation, request(TaskId::from(id))).await)
}

/// Passes if the refusal is that for a task that does not exist.
fn refused_as_unknown(reply: &Reply) -> CheckResult {
    match reply.content {
        _ if matches!(reply.status, 401 | 403 | 404) => Ok(()),
        _ if reply.is_refused_with(ErrorKind::TaskNotFound) => Ok(()),
        ReplyContent::Error(_) => reply.failure_because("the refusal tells that the task is there"),
        ReplyContent::Result(_) => reply.failure_because("the second caller is let in"),
        ReplyContent::Unknown(_) => reply.failure(),
        ReplyContent::NotA2a | ReplyContent::Missing => skip("the second caller got no answer"),
    }
}

pub(crate) async fn read(interface: &TestedInterface) -> CheckResult {
    is_refused(interface, Operation::GetTask, |id| interface.get_request(id)).await
}

pub(crate) async fn list(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 has no lists")?;
    let id = task(interface).await?;
    let request = ListRequest { tenant: interface.tenant(), ..ListRequest::default() };
    let reply = interface.call_as(Caller::Second, Operation::ListTasks, Request::List(request)).await;
    match reply.result().is_some_and(|result| entries(&result["tasks"]).any(|task| task["id"] == id)) {
        true => reply.failure_because("the second caller is shown it"),
        false => Ok(()),
    }
}

pub(crate) async fn cancel(interface: &TestedInterface) -> CheckResult {
    is_refused(interface, Operation::CancelTask, |id| interface.cancel_request(id)).await
}

pub(crate) async fn subscribe(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.agent.has_capability("streaming"), "the card does not declare streaming")?;
    let id = task(interface).await?;
    let Ok((test_request, _)) = interface.encode(Operation::SubscribeToTask, &interface.subscribe_request(id)) else {
        return skip("the task cannot be asked for");
    };
    let test_request = TestRequest { caller: Caller::Second, ..test_request };
    let recorded = match interface.request_stream(&test_request).await {
        Err(recorded) => recorded,
        Ok(mut stream) => {
            stream.read(ReadUntil::First, interface.agent.patience).await;
            stream.close()
        }
    };
    match recorded.events.first() {
        Some(frame) => fail(&recorded.reply.sent, format!("the second caller hears {}", short(frame))),
        None => refused_as_unknown(&recorded.reply),
    }
}

pub(crate) async fn answer(interface: &TestedInterface) -> CheckResult {
    is_refused(interface, Operation::SendMessage, |id| interface.message_to(id)).await
}

pub(crate) async fn webhooks(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.agent.has_capability("pushNotifications"), "the card does not declare webhooks")?;
    is_refused(interface, Operation::ListPushConfigs, |id| interface.list_webhooks_request(id)).await
}
