//! Whether webhooks are kept as they are set, and refused where they are not declared.

pub(crate) mod deleted;
pub(crate) mod delivered;
pub(crate) mod slow_receiver;
pub(crate) mod unknown;

use serde_json::Value;
use switchboard_a2a::{Dialect, ErrorKind, Operation, PushConfig, PushRequest, Request, TaskId};

use crate::checks::{Check, Group, Run, Severity};
use crate::interface::TestedInterface;
use crate::operations::ENDED;
use crate::receiver::Receiver;
use crate::reply::{Reply, ReplyContent};
use crate::security::is_loopback;
use crate::verdict::Verdict;

/// What our webhooks are called.
pub(crate) const NAME: &str = "a2a-check";

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "push-undeclared",
        group: Group::Push,
        title: "an agent that does not declare webhooks refuses them with -32003",
        rule: "A2A 1.0 §3.3.4",
        severity: Severity::Must,
        fix: "answer PushNotificationNotSupportedError, or declare capabilities.pushNotifications",
        run: Run::Interface(|interface| Box::pin(undeclared(interface))),
    },
    Check {
        id: "push-round-trip",
        group: Group::Push,
        title: "a webhook can be set, read, listed and deleted",
        rule: "A2A 1.0 §3.1.7 to §3.1.10",
        severity: Severity::Must,
        fix: "keep webhooks with their task until they are deleted",
        run: Run::Interface(|interface| Box::pin(round_trip(interface))),
    },
];

async fn undeclared(interface: &TestedInterface) -> Verdict {
    if interface.agent.has_capability("pushNotifications") {
        return Verdict::not_applicable("the card declares webhooks");
    }
    let task_id = interface.first_id().await.map_or_else(TaskId::generate, TaskId::from);
    let request = PushRequest::List { task_id, page_size: None, page_token: None, tenant: interface.tenant() };
    let reply = interface.call(Operation::ListPushConfigs, Request::Push(request)).await;
    // Version 0.3 need not know the methods, and leaves open how that is said over REST.
    match reply.content {
        ReplyContent::Error(_) if !interface.is_v1() => Verdict::pass(),
        ReplyContent::NotA2a if !interface.is_v1() && !interface.is_rpc() && reply.status >= 400 => Verdict::pass(),
        _ => reply.expect(&[ErrorKind::PushNotSupported]),
    }
}

pub(crate) fn config(interface: &TestedInterface, url: &str, task_id: Option<&str>) -> PushConfig {
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

/// A task for a webhook: one that has not ended, if there is one. Of one that has, webhooks need not be kept.
async fn task(interface: &TestedInterface) -> Option<(String, bool)> {
    for id in [interface.first_id().await.map(str::to_owned), interface.running().await.map(str::to_owned)]
        .into_iter()
        .flatten()
    {
        if !interface.has_ended_now(&id).await {
            return Some((id, false));
        }
    }
    interface.ended().await.map(|id| (id.to_owned(), true))
}

/// Why no webhook is set, if none is.
fn exempt(interface: &TestedInterface) -> Option<Verdict> {
    let why = match () {
        () if !interface.agent.has_capability("pushNotifications") => "the card does not declare webhooks",
        // Many agents call a new webhook of an ended task at once, and whoever else is named would be told of it.
        () if !is_loopback(&interface.endpoint.url) => "the agent is elsewhere and cannot call this machine",
        () => return None,
    };
    Some(Verdict::not_applicable(why))
}

async fn round_trip(interface: &TestedInterface) -> Verdict {
    if let Some(verdict) = exempt(interface) {
        return verdict;
    }
    let Some((id, has_ended)) = task(interface).await else {
        return Verdict::not_applicable("the agent has made no task");
    };
    let Ok(receiver) = Receiver::start(true).await else {
        return Verdict::not_applicable("no port could be opened for its webhook");
    };
    match kept_and_deleted(interface, &id, &receiver.url()).await {
        Ok(()) => Verdict::pass(),
        // It may have ended meanwhile.
        Err(WebhookProblem::Gone(_)) if has_ended || interface.has_ended_now(&id).await => {
            Verdict::not_applicable(ENDED)
        }
        Err(WebhookProblem::Gone(verdict) | WebhookProblem::Otherwise(verdict)) => verdict.about_task(&id),
    }
}

/// What is wrong with keeping a webhook.
enum WebhookProblem {
    /// It is not there, as is right for the webhook of a task that has ended.
    Gone(Verdict),
    Otherwise(Verdict),
}

async fn kept_and_deleted(interface: &TestedInterface, id: &str, url: &str) -> Result<(), WebhookProblem> {
    let push = |operation, request| interface.call(operation, Request::Push(request));
    let unresolved = |reply: &Reply, problem: &str| {
        let failure = reply.failure_because(problem);
        let kinds = [ErrorKind::TaskNotFound, ErrorKind::UnsupportedOperation];
        let is_gone = reply.result().is_some() || kinds.into_iter().any(|kind| reply.is_refused_with(kind));
        if is_gone { WebhookProblem::Gone(failure) } else { WebhookProblem::Otherwise(failure) }
    };
    let set = push(Operation::CreatePushConfig, PushRequest::Create(config(interface, url, Some(id)))).await;
    let Some(result) = set.result() else {
        return Err(match refused(&set) {
            verdict if verdict.is_failure() => unresolved(&set, "it cannot be set"),
            verdict => WebhookProblem::Otherwise(verdict),
        });
    };
    let Some(name) = config_id(interface.dialect(), result) else {
        return Err(WebhookProblem::Otherwise(set.failure_because("the answer has no id")));
    };
    let (task_id, tenant) = (TaskId::from(id), interface.tenant());
    let get = PushRequest::Get { task_id: task_id.clone(), id: Some(name.clone()), tenant: tenant.clone() };
    let got = push(Operation::GetPushConfig, get.clone()).await;
    if got.result().and_then(|result| config_id(interface.dialect(), result)).as_ref() != Some(&name) {
        return Err(unresolved(&got, "it cannot be read"));
    }
    let list =
        PushRequest::List { task_id: task_id.clone(), page_size: None, page_token: None, tenant: tenant.clone() };
    let listed = push(Operation::ListPushConfigs, list).await;
    let all = listed.result().map(|result| if result.is_array() { result } else { &result["configs"] });
    let mut all = all.and_then(Value::as_array).into_iter().flatten();
    let is_listed = all.any(|entry| config_id(interface.dialect(), entry).as_ref() == Some(&name));
    let delete = PushRequest::Delete { task_id, id: name, tenant };
    let deleted = push(Operation::DeletePushConfig, delete).await;
    if !is_listed {
        return Err(unresolved(&listed, "it is not listed"));
    }
    if deleted.result().is_none() {
        return Err(unresolved(&deleted, "it cannot be deleted"));
    }
    let gone = push(Operation::GetPushConfig, get).await;
    match gone.result() {
        Some(_) => Err(WebhookProblem::Otherwise(gone.failure_because("it is still there after it was deleted"))),
        None => Ok(()),
    }
}

/// What a webhook on this machine is refused with. Agents do well to call nobody on their own, and the specification names
/// no error for it.
pub(crate) fn refused(reply: &Reply) -> Verdict {
    use ErrorKind::{InvalidParams, InvalidRequest, PermissionDenied, UnsupportedOperation};
    let kinds = [InvalidParams, InvalidRequest, PermissionDenied, UnsupportedOperation];
    let is_address =
        matches!(reply.content, ReplyContent::Error(None)) || kinds.into_iter().any(|kind| reply.is_refused_with(kind));
    match is_address {
        true => Verdict::not_applicable("the agent takes no webhook on this machine, as it should be elsewhere"),
        false => reply.failure(),
    }
}

/// The id of a configuration, wherever the dialect has it.
fn config_id(dialect: Dialect, value: &Value) -> Option<String> {
    let id = match dialect {
        Dialect::V1 => &value["id"],
        _ => &value["pushNotificationConfig"]["id"],
    };
    let id = id.as_str().or_else(|| value["name"].as_str()?.rsplit('/').next());
    id.filter(|id| !id.is_empty()).map(str::to_owned)
}
