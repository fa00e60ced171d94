//! Whether a webhook is called, and with what. One message with a receiver on this machine tells both.

use serde_json::Value;
use switchboard_a2a::{Operation, PushRequest, Request, SendConfiguration, TaskId};

use super::{NAME, config, refused};
use crate::checks::{Check, Group, Run, Severity};
use crate::interface::TestedInterface;
use crate::receiver::Receiver;
use crate::reply::ReplyContent;
use crate::run_once::{Abandoned, TOO_LONG};
use crate::security::is_loopback;
use crate::verdict::Verdict;
use crate::wire::{self, SendResult, short};

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "push-delivered",
        group: Group::Push,
        title: "a webhook that was taken is called",
        rule: "A2A 1.0 §3.5.1; §13.2 has agents call nobody on their own machine",
        severity: Severity::Quality,
        fix: "call webhooks for every change, at least once; refuse those that you will not call when they are set",
        run: Run::Interface(|interface| Box::pin(delivered(interface))),
    },
    Check {
        id: "push-payload",
        group: Group::Push,
        title: "a webhook is told what happened to the task",
        rule: "A2A 1.0 §4.3.3; 0.3 §9.5",
        severity: Severity::Must,
        fix: "POST a StreamResponse with exactly one member, in 0.3 the task",
        run: Run::Interface(|interface| Box::pin(payload(interface))),
    },
];

/// What came of a message with a webhook.
pub(crate) struct Delivery {
    sent: String,
    /// What the webhook got, if it was called; why there is nothing to wait for.
    body: Result<Option<Value>, Verdict>,
}

impl Abandoned for Delivery {
    fn abandoned() -> Self {
        Self::none(TOO_LONG)
    }
}

impl Delivery {
    fn none(why: &str) -> Self {
        Self { sent: String::new(), body: Err(Verdict::not_applicable(why)) }
    }
}

/// Sends a message with a webhook, and waits for the call.
pub(crate) async fn try_it(interface: &TestedInterface) -> Delivery {
    if !interface.agent.has_capability("pushNotifications") {
        return Delivery::none("the card does not declare webhooks");
    }
    if !is_loopback(&interface.endpoint.url) {
        return Delivery::none("the agent is elsewhere and cannot call this machine");
    }
    if interface.first_task().await.is_none() {
        return Delivery::none("the agent has made no task");
    }
    let Ok(mut receiver) = Receiver::start(true).await else {
        return Delivery::none("no port could be opened for its webhook");
    };
    let mut request = interface.message(false);
    let webhook = config(interface, &receiver.url(), None);
    request.configuration =
        Some(SendConfiguration { task_push_notification_config: Some(webhook), ..SendConfiguration::default() });
    let reply = interface.call(Operation::SendMessage, Request::Send(request)).await;
    let Some(result) = reply.result() else {
        return match reply.content {
            ReplyContent::Missing => Delivery::none("the message was not answered in time"),
            _ => Delivery { body: Err(refused(&reply)), sent: reply.sent },
        };
    };
    let task = match wire::sent(interface.dialect(), result) {
        Ok(SendResult::Task(task)) => task,
        _ => return Delivery::none("the agent has made no task"),
    };
    let id = task["id"].as_str().unwrap_or_default();
    if !interface.has_ended(&task) {
        // It is ours, and nobody will answer it.
        interface.cancel(id).await;
    }
    let body = receiver.next(interface.agent.patience).await;
    // Whatever is still to be delivered would be tried again and again.
    let delete = PushRequest::Delete { task_id: TaskId::from(id), id: NAME.to_owned(), tenant: interface.tenant() };
    interface.call(Operation::DeletePushConfig, Request::Push(delete)).await;
    Delivery { sent: reply.sent, body: Ok(body) }
}

async fn delivered(interface: &TestedInterface) -> Verdict {
    let Delivery { sent, body } = interface.delivery().await;
    match body {
        Ok(Some(_)) => Verdict::pass(),
        Ok(None) => {
            let seconds = interface.agent.patience.as_secs();
            Verdict::fail(sent, format!("a webhook on this machine was taken, and not called within {seconds} s"))
        }
        // A refusal that is none of the address has a check of its own.
        Err(verdict) if verdict.is_failure() => Verdict::not_applicable("the webhook was not taken"),
        Err(verdict) => verdict.clone(),
    }
}

async fn payload(interface: &TestedInterface) -> Verdict {
    let Delivery { sent, body } = interface.delivery().await;
    let body = match body {
        Ok(Some(body)) => body,
        Ok(None) => return Verdict::not_applicable("no webhook was called"),
        Err(verdict) => return verdict.clone(),
    };
    let members = ["task", "message", "statusUpdate", "artifactUpdate"];
    let found = members.iter().filter(|member| body.get(member).is_some()).count();
    let is_good =
        if interface.is_v1() { found == 1 } else { found == 1 || body["kind"].is_string() || body["id"].is_string() };
    if is_good { Verdict::pass() } else { Verdict::fail(sent, format!("the webhook got {}", short(body))) }
}
