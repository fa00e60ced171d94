//! Checks of webhook configurations: set, read, list, delete.

pub(crate) mod delivered;
pub(crate) mod slow_receiver;
pub(crate) mod unknown;

use serde_json::Value;
use switchboard_a2a::{Dialect, ErrorKind, Operation, PushConfig, PushRequest, Request, SendConfiguration, TaskId};

use crate::errors::NOT_RPC;
use crate::interface::TestedInterface;
use crate::operations::ENDED;
use crate::receiver::Receiver;
use crate::reply::{Reply, ReplyContent};
use crate::security::is_loopback;
use crate::verdict::{CheckResult, OrSkip, Verdict, applies_if, skip};

/// The id of our webhooks.
const NAME: &str = "a2a-check";

pub(crate) async fn undeclared(interface: &TestedInterface) -> CheckResult {
    applies_if(!interface.agent.has_capability("pushNotifications"), "the card declares webhooks")?;
    let task_id = interface.first_id().await.map_or_else(TaskId::generate, TaskId::from);
    let reply = interface.call(Operation::ListPushConfigs, interface.list_webhooks_request(task_id)).await;
    // Version 0.3 need not know the methods, and leaves open how that is said over REST.
    match reply.content {
        ReplyContent::Error(_) if !interface.is_v1() => Ok(()),
        ReplyContent::NotA2a if !interface.is_v1() && !interface.is_rpc() && reply.status >= 400 => Ok(()),
        _ => reply.expect(&[ErrorKind::PushNotSupported]),
    }
}

fn config(interface: &TestedInterface, url: &str, task_id: Option<&str>) -> PushConfig {
    PushConfig {
        tenant: interface.tenant(),
        id: Some(NAME.to_owned()),
        task_id: task_id.map(str::to_owned),
        url: url.to_owned(),
        token: None,
        authentication: None,
        payload: None,
    }
}

async fn create(interface: &TestedInterface, task_id: &str, url: &str) -> Reply {
    let request = PushRequest::Create(config(interface, url, Some(task_id)));
    interface.call(Operation::CreatePushConfig, Request::Push(request)).await
}

async fn delete(interface: &TestedInterface, task_id: &str, id: &str) -> Reply {
    let (task_id, id) = (TaskId::from(task_id), id.to_owned());
    let request = PushRequest::Delete { task_id, id, tenant: interface.tenant() };
    interface.call(Operation::DeletePushConfig, Request::Push(request)).await
}

/// Sends the usual message with a webhook.
async fn send_with_webhook(interface: &TestedInterface, receiver: &Receiver) -> Reply {
    let mut request = interface.message(false);
    let webhook = config(interface, &receiver.url(), None);
    request.configuration =
        Some(SendConfiguration { task_push_notification_config: Some(webhook), ..SendConfiguration::default() });
    interface.call(Operation::SendMessage, Request::Send(request)).await
}

async fn start_receiver(answers: bool) -> CheckResult<Receiver> {
    Receiver::start(answers).await.ok().or_skip("no port could be opened for its webhook")
}

/// A task for a webhook, and whether it has ended: one that has not is preferred, because agents need not keep the
/// webhooks of those that have.
async fn task(interface: &TestedInterface) -> CheckResult<(String, bool)> {
    for id in [interface.first_id().await, interface.running().await].into_iter().flatten() {
        if !interface.has_ended_now(id).await {
            return Ok((id.to_owned(), false));
        }
    }
    interface.ended().await.map(|id| (id.to_owned(), true)).or_skip("the agent has made no task")
}

/// Whether webhooks can be set here at all.
fn applies(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.agent.has_capability("pushNotifications"), "the card does not declare webhooks")?;
    // Many agents call a new webhook of an ended task at once, and no other host may get that call.
    applies_if(is_loopback(&interface.endpoint.url), "the agent is elsewhere and cannot call this machine")
}

pub(crate) async fn round_trip(interface: &TestedInterface) -> CheckResult {
    applies(interface)?;
    let task = task(interface).await?;
    let receiver = start_receiver(true).await?;
    set_read_list_delete(interface, &task, &receiver.url()).await.about_task(&task.0)
}

async fn set_read_list_delete(interface: &TestedInterface, task: &(String, bool), url: &str) -> CheckResult {
    let (id, has_ended) = task;
    // A webhook that is not there is right if its task has ended, maybe meanwhile.
    let lost = async |reply: &Reply, problem: &str| {
        let kinds = [ErrorKind::TaskNotFound, ErrorKind::UnsupportedOperation];
        let is_gone = reply.result().is_some() || reply.is_refused_with_any(&kinds);
        match is_gone && (*has_ended || interface.has_ended_now(id).await) {
            true => skip(ENDED),
            false => reply.failure_because(problem),
        }
    };
    let set = create(interface, id, url).await;
    let Some(result) = set.result() else {
        let refused = refused(&set);
        return if refused.is_failure() { lost(&set, "it cannot be set").await } else { refused };
    };
    let Some(name) = config_id(interface.dialect(), result) else {
        return set.failure_because("the answer has no id");
    };
    let task_id = TaskId::from(id.as_str());
    let get = PushRequest::Get { task_id: task_id.clone(), id: Some(name.clone()), tenant: interface.tenant() };
    let got = interface.call(Operation::GetPushConfig, Request::Push(get.clone())).await;
    if got.result().and_then(|result| config_id(interface.dialect(), result)).as_ref() != Some(&name) {
        return lost(&got, "it cannot be read").await;
    }
    let listed = interface.call(Operation::ListPushConfigs, interface.list_webhooks_request(task_id)).await;
    let all = listed.result().map(|result| if result.is_array() { result } else { &result["configs"] });
    let mut all = all.and_then(Value::as_array).into_iter().flatten();
    let is_listed = all.any(|entry| config_id(interface.dialect(), entry).as_ref() == Some(&name));
    let deleted = delete(interface, id, &name).await;
    if !is_listed {
        return lost(&listed, "it is not listed").await;
    }
    if deleted.result().is_none() {
        return lost(&deleted, "it cannot be deleted").await;
    }
    let gone = interface.call(Operation::GetPushConfig, Request::Push(get)).await;
    if gone.result().is_some() { gone.failure_because("it is still there after it was deleted") } else { Ok(()) }
}

/// JSON-RPC clients take a response with neither result nor error for none.
pub(crate) async fn delete_result(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_rpc(), NOT_RPC)?;
    applies(interface)?;
    let (id, _) = task(interface).await?;
    let receiver = start_receiver(true).await?;
    let set = create(interface, &id, &receiver.url()).await;
    let Some(name) = set.result().and_then(|result| config_id(interface.dialect(), result)) else {
        // What is wrong with that has a check of its own.
        let verdict = refused(&set);
        return if verdict.is_failure() { skip("no webhook could be set") } else { verdict };
    };
    let deleted = delete(interface, &id, &name).await;
    match (deleted.result(), &deleted.json) {
        (Some(_), Some(json)) if json.get("result").is_some() => Ok(()),
        (Some(_), _) => deleted.failure_because("neither a result nor an error").about_task(&id),
        (None, _) => skip("the webhook could not be deleted"),
    }
}

/// Skips where the agent refuses a webhook on this machine: an SSRF guard is right to, and the specification names no
/// error for it.
fn refused<T>(reply: &Reply) -> CheckResult<T> {
    use ErrorKind::{InvalidParams, InvalidRequest, PermissionDenied, UnsupportedOperation};
    let kinds = [InvalidParams, InvalidRequest, PermissionDenied, UnsupportedOperation];
    let is_address = matches!(reply.content, ReplyContent::Error(None)) || reply.is_refused_with_any(&kinds);
    applies_if(!is_address, "the agent takes no webhook on this machine, as it should be elsewhere")?;
    reply.failure()
}

fn config_id(dialect: Dialect, value: &Value) -> Option<String> {
    let id = match dialect {
        Dialect::V1 => &value["id"],
        _ => &value["pushNotificationConfig"]["id"],
    };
    let id = id.as_str().or_else(|| value["name"].as_str()?.rsplit('/').next());
    id.filter(|id| !id.is_empty()).map(str::to_owned)
}
