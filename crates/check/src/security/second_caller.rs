//! Checks that a second authenticated caller cannot reach the tasks of the first, nor learn that they exist: the
//! refusals must be those for tasks that do not exist.

use switchboard_a2a::{ErrorKind, ListRequest, Operation, Request, TaskId};

use crate::checks::{CheckFunction, Run};
use crate::interface::TestedInterface;
use crate::reply::{Reply, ReplyContent};
use crate::request::{Caller, TestRequest};
use crate::verdict::{CheckResult, OrSkip, applies_if, fail, skip};

pub(crate) const CHECKS: &[CheckFunction] = &[
    ("security-other-read", Run::Interface(|interface| Box::pin(read(interface)))),
    ("security-other-list", Run::Interface(|interface| Box::pin(list(interface)))),
    ("security-other-cancel", Run::Interface(|interface| Box::pin(cancel(interface)))),
    ("security-other-subscribe", Run::Interface(|interface| Box::pin(subscribe(interface)))),
    ("security-other-answer", Run::Interface(|interface| Box::pin(answer(interface)))),
    ("security-other-webhooks", Run::Interface(|interface| Box::pin(webhooks(interface)))),
];

/// A task of the first caller, if a second caller is configured and accepted.
async fn task(interface: &TestedInterface) -> CheckResult<&str> {
    interface.agent.second_caller()?;
    let test_request = interface.harmless_request().or_else(skip)?;
    let reply = interface.ask(&TestRequest { caller: Caller::Second, ..test_request }).await;
    applies_if(!matches!(reply.status, 401 | 403), "the key of the second caller is not accepted")?;
    interface.first_id().await.or_skip("the agent has made no task")
}

async fn call(interface: &TestedInterface, operation: Operation, request: Request) -> Reply {
    interface.call_as(Caller::Second, operation, request).await
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

async fn read(interface: &TestedInterface) -> CheckResult {
    let id = task(interface).await?;
    let request = Request::Get { id: TaskId::from(id), history_length: None, tenant: interface.tenant() };
    refused_as_unknown(&call(interface, Operation::GetTask, request).await)
}

async fn list(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 has no lists")?;
    let id = task(interface).await?;
    let request = ListRequest { tenant: interface.tenant(), ..ListRequest::default() };
    let reply = call(interface, Operation::ListTasks, Request::List(request)).await;
    let mut tasks = reply.result().and_then(|result| result["tasks"].as_array()).into_iter().flatten();
    match tasks.any(|task| task["id"] == id) {
        true => reply.failure_because("the second caller is shown it"),
        false => Ok(()),
    }
}

async fn cancel(interface: &TestedInterface) -> CheckResult {
    let id = task(interface).await?;
    let request = Request::Cancel { id: TaskId::from(id), metadata: None, tenant: interface.tenant() };
    refused_as_unknown(&call(interface, Operation::CancelTask, request).await)
}

async fn subscribe(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.agent.has_capability("streaming"), "the card does not declare streaming")?;
    let id = task(interface).await?;
    let request = Request::Subscribe { id: TaskId::from(id), tenant: interface.tenant() };
    let Ok((test_request, _)) = interface.encode(Operation::SubscribeToTask, &request) else {
        return skip("the task cannot be asked for");
    };
    let test_request = TestRequest { caller: Caller::Second, ..test_request };
    let recorded = match interface.request_stream(&test_request).await {
        Err(recorded) => recorded,
        Ok(mut stream) => {
            stream.read(crate::interface::ReadUntil::First, interface.agent.patience).await;
            stream.close()
        }
    };
    match recorded.events.first() {
        Some(frame) => fail(&recorded.reply.sent, format!("the second caller hears {}", crate::wire::short(frame))),
        None => refused_as_unknown(&recorded.reply),
    }
}

async fn answer(interface: &TestedInterface) -> CheckResult {
    let id = task(interface).await?;
    refused_as_unknown(&call(interface, Operation::SendMessage, interface.message_to(TaskId::from(id))).await)
}

async fn webhooks(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.agent.has_capability("pushNotifications"), "the card does not declare webhooks")?;
    let id = task(interface).await?;
    let list = interface.list_webhooks_request(TaskId::from(id));
    refused_as_unknown(&call(interface, Operation::ListPushConfigs, list).await)
}
