//! Whether webhooks are kept as they are set, and called.

pub(crate) mod slow;
pub(crate) mod unknown;

use serde_json::Value;
use switchboard_a2a::{Dialect, ErrorKind, Operation, PushConfig, PushRequest, Request, SendConfiguration, TaskId};

use crate::answer::Said;
use crate::checks::{Check, Group, Run, Severity};
use crate::line::{Line, NOBODYS};
use crate::receiver::Receiver;
use crate::security::is_loopback;
use crate::verdict::Verdict;
use crate::wire::{self, short};

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
        run: Run::Interface(|line| Box::pin(undeclared(line))),
    },
    Check {
        id: "push-round-trip",
        group: Group::Push,
        title: "a webhook can be set, read, listed and deleted",
        rule: "A2A 1.0 §3.1.7 to §3.1.10",
        severity: Severity::Must,
        fix: "keep webhooks with their task until they are deleted",
        run: Run::Interface(|line| Box::pin(round_trip(line))),
    },
    Check {
        id: "push-delivered",
        group: Group::Push,
        title: "a webhook is called with what happened to the task",
        rule: "A2A 1.0 §3.5.1, §4.3.3",
        severity: Severity::Must,
        fix: "POST a StreamResponse with exactly one member for every change, at least once",
        run: Run::Interface(|line| Box::pin(delivered(line))),
    },
];

async fn undeclared(line: &Line) -> Verdict {
    if line.subject.can("pushNotifications") {
        return Verdict::not_applicable("the card declares webhooks");
    }
    let id = line.first_id().await.unwrap_or(NOBODYS);
    let request =
        PushRequest::List { task_id: TaskId::from(id), page_size: None, page_token: None, tenant: line.tenant() };
    let reply = line.call(Operation::ListPushConfigs, Request::Push(request)).await;
    // Over REST, version 0.3 leaves open how it is said.
    match reply.said {
        Said::Refused(_) if line.dialect() == Dialect::V03Rest => Verdict::pass(),
        _ => reply.expect(&[ErrorKind::PushNotSupported]),
    }
}

pub(crate) fn config(line: &Line, url: &str, task_id: Option<&str>) -> PushConfig {
    PushConfig {
        tenant: line.tenant(),
        id: Some(NAME.to_owned()),
        task_id: task_id.map(str::to_owned),
        url: url.to_owned(),
        token: None,
        authentication: None,
        payload: None,
    }
}

async fn round_trip(line: &Line) -> Verdict {
    if !line.subject.can("pushNotifications") {
        return Verdict::not_applicable("the card does not declare webhooks");
    }
    let Some(id) = line.ended().await else {
        return Verdict::not_applicable("no task has ended");
    };
    if !is_loopback(&line.interface.url) {
        // Many agents call a new webhook of an ended task at once, and whoever else is named would be told of it.
        return Verdict::not_applicable("the agent is elsewhere and cannot call this machine");
    }
    let Ok(receiver) = Receiver::start(true).await else {
        return Verdict::not_applicable("no port could be opened for its webhook");
    };
    let url = receiver.url();
    let push = |operation, request| line.call(operation, Request::Push(request));
    let set = push(Operation::CreatePushConfig, PushRequest::Create(config(line, &url, Some(id)))).await;
    let Some(result) = set.result() else {
        return refused(&set.complaint(), set.is_refused_with(ErrorKind::InvalidParams));
    };
    let Some(name) = config_id(line.dialect(), result) else {
        return set.complaint_that("the answer has no id");
    };
    let (task_id, tenant) = (TaskId::from(id), line.tenant());
    let get = PushRequest::Get { task_id: task_id.clone(), id: Some(name.clone()), tenant: tenant.clone() };
    let got = push(Operation::GetPushConfig, get.clone()).await;
    if got.result().and_then(|result| config_id(line.dialect(), result)).as_ref() != Some(&name) {
        return got.complaint_that("it cannot be read");
    }
    let list =
        PushRequest::List { task_id: task_id.clone(), page_size: None, page_token: None, tenant: tenant.clone() };
    let listed = push(Operation::ListPushConfigs, list).await;
    let all = listed.result().map(|result| if result.is_array() { result } else { &result["configs"] });
    let mut all = all.and_then(Value::as_array).into_iter().flatten();
    let is_listed = all.any(|entry| config_id(line.dialect(), entry).as_ref() == Some(&name));
    let delete = PushRequest::Delete { task_id, id: name, tenant };
    let deleted = push(Operation::DeletePushConfig, delete).await;
    if !is_listed {
        return listed.complaint_that("it is not listed");
    }
    if deleted.result().is_none() {
        return deleted.complaint_that("it cannot be deleted");
    }
    let gone = push(Operation::GetPushConfig, get).await;
    if gone.result().is_some() {
        gone.complaint_that("it is still there after it was deleted")
    } else {
        Verdict::pass()
    }
}

/// Agents do well to call nobody on their own machine, and may end tasks for good.
pub(crate) fn refused(complaint: &Verdict, is_address: bool) -> Verdict {
    match is_address {
        true => Verdict::not_applicable("the agent takes no webhook on this machine, as it should be elsewhere"),
        false => complaint.clone(),
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

async fn delivered(line: &Line) -> Verdict {
    if !line.subject.can("pushNotifications") {
        return Verdict::not_applicable("the card does not declare webhooks");
    }
    if !is_loopback(&line.interface.url) {
        return Verdict::not_applicable("the agent is elsewhere and cannot call this machine");
    }
    if line.first_task().await.is_none() {
        return Verdict::not_applicable("the agent has made no task");
    }
    let mut receiver = match Receiver::start(true).await {
        Ok(receiver) => receiver,
        Err(error) => return Verdict::not_applicable(format!("nothing can be received here: {error}")),
    };
    let mut request = line.message(false);
    let webhook = config(line, &receiver.url(), None);
    request.configuration =
        Some(SendConfiguration { task_push_notification_config: Some(webhook), ..SendConfiguration::default() });
    let reply = line.call(Operation::SendMessage, Request::Send(request)).await;
    if matches!(reply.said, Said::Nothing) {
        return Verdict::not_applicable("the message was not answered in time");
    }
    let Some(result) = reply.result() else {
        return refused(&reply.complaint(), reply.is_refused_with(ErrorKind::InvalidParams));
    };
    let task = match wire::sent(line.dialect(), result) {
        Ok(wire::Sent::Task(task)) => task,
        _ => return Verdict::not_applicable("the agent has made no task"),
    };
    let id = task["id"].as_str().unwrap_or_default();
    if !wire::has_ended(line.dialect(), &task) {
        // It is ours, and nobody will answer it.
        line.cancel(id).await;
    }
    let body = receiver.next(line.subject.patience).await;
    // Whatever is still to be delivered would be tried again and again.
    let delete = PushRequest::Delete { task_id: TaskId::from(id), id: NAME.to_owned(), tenant: line.tenant() };
    line.call(Operation::DeletePushConfig, Request::Push(delete)).await;
    let Some(body) = body else {
        let seconds = line.subject.patience.as_secs();
        return Verdict::fail(&reply.sent, format!("the webhook was not called within {seconds} s"));
    };
    let members = ["task", "message", "statusUpdate", "artifactUpdate"];
    let found = members.iter().filter(|member| body.get(member).is_some()).count();
    let is_good =
        if line.is_v1() { found == 1 } else { found == 1 || body["kind"].is_string() || body["id"].is_string() };
    if is_good { Verdict::pass() } else { Verdict::fail(&reply.sent, format!("the webhook got {}", short(&body))) }
}
