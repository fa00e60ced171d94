//! Checks of requests for webhooks and tasks that do not exist.

use switchboard_a2a::{ErrorKind, Operation, PushRequest, Request, TaskId};

use crate::interface::TestedInterface;
use crate::push::delete;
use crate::verdict::{CheckResult, OrSkip, Verdict, applies_if};

/// The id of a webhook that does not exist.
const NONE: &str = "a2a-check-none";

/// Whether version 1.0 says how webhooks that do not exist are refused here.
fn applies(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.agent.has_capability("pushNotifications"), "the card does not declare webhooks")?;
    applies_if(interface.is_v1(), "version 0.3 leaves it open")
}

pub(crate) async fn unknown_task(interface: &TestedInterface) -> CheckResult {
    applies(interface)?;
    let list = interface.list_webhooks_request(TaskId::generate());
    interface.call(Operation::ListPushConfigs, list).await.expect(&[ErrorKind::TaskNotFound])
}

pub(crate) async fn unknown_config(interface: &TestedInterface) -> CheckResult {
    applies(interface)?;
    let id = interface.first_id().await.or_skip("the agent has made no task")?;
    let get = PushRequest::Get { task_id: TaskId::from(id), id: Some(NONE.to_owned()), tenant: interface.tenant() };
    let reply = interface.call(Operation::GetPushConfig, Request::Push(get)).await;
    reply.expect(&[ErrorKind::TaskNotFound]).about_task(id)
}

pub(crate) async fn delete_again(interface: &TestedInterface) -> CheckResult {
    applies(interface)?;
    let id = interface.first_id().await.or_skip("the agent has made no task")?;
    let reply = delete(interface, id, NONE).await;
    if reply.result().is_some() { Ok(()) } else { reply.expect(&[ErrorKind::TaskNotFound]).about_task(id) }
}
