//! Whether a webhook is called, and with what. One message with a receiver on this machine tells both.

use serde_json::Value;
use switchboard_a2a::{Operation, PushRequest, Request, SendConfiguration, TaskId};

use super::{NAME, config, refused};
use crate::answer::Said;
use crate::checks::{Check, Group, Run, Severity};
use crate::line::Line;
use crate::receiver::Receiver;
use crate::security::is_loopback;
use crate::shared::{GivenUp, TOO_LONG};
use crate::verdict::Verdict;
use crate::wire::{self, Sent, short};

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "push-delivered",
        group: Group::Push,
        title: "a webhook that was taken is called",
        rule: "A2A 1.0 §3.5.1; §13.2 has agents call nobody on their own machine",
        severity: Severity::Quality,
        fix: "call webhooks for every change, at least once; refuse those that you will not call when they are set",
        run: Run::Interface(|line| Box::pin(delivered(line))),
    },
    Check {
        id: "push-payload",
        group: Group::Push,
        title: "a webhook is told what happened to the task",
        rule: "A2A 1.0 §4.3.3; 0.3 §9.5",
        severity: Severity::Must,
        fix: "POST a StreamResponse with exactly one member, in 0.3 the task",
        run: Run::Interface(|line| Box::pin(payload(line))),
    },
];

/// What came of a message with a webhook.
pub(crate) struct Delivery {
    sent: String,
    /// What the webhook got, if it was called; why there is nothing to wait for.
    body: Result<Option<Value>, Verdict>,
}

impl GivenUp for Delivery {
    fn given_up() -> Self {
        Self::none(TOO_LONG)
    }
}

impl Delivery {
    fn none(why: &str) -> Self {
        Self { sent: String::new(), body: Err(Verdict::not_applicable(why)) }
    }
}

/// Sends a message with a webhook, and waits for the call.
pub(crate) async fn try_it(line: &Line) -> Delivery {
    if !line.subject.can("pushNotifications") {
        return Delivery::none("the card does not declare webhooks");
    }
    if !is_loopback(&line.interface.url) {
        return Delivery::none("the agent is elsewhere and cannot call this machine");
    }
    if line.first_task().await.is_none() {
        return Delivery::none("the agent has made no task");
    }
    let Ok(mut receiver) = Receiver::start(true).await else {
        return Delivery::none("no port could be opened for its webhook");
    };
    let mut request = line.message(false);
    let webhook = config(line, &receiver.url(), None);
    request.configuration =
        Some(SendConfiguration { task_push_notification_config: Some(webhook), ..SendConfiguration::default() });
    let reply = line.call(Operation::SendMessage, Request::Send(request)).await;
    let Some(result) = reply.result() else {
        return match reply.said {
            Said::Nothing => Delivery::none("the message was not answered in time"),
            _ => Delivery { body: Err(refused(&reply)), sent: reply.sent },
        };
    };
    let task = match wire::sent(line.dialect(), result) {
        Ok(Sent::Task(task)) => task,
        _ => return Delivery::none("the agent has made no task"),
    };
    let id = task["id"].as_str().unwrap_or_default();
    if !line.has_ended(&task) {
        // It is ours, and nobody will answer it.
        line.cancel(id).await;
    }
    let body = receiver.next(line.subject.patience).await;
    // Whatever is still to be delivered would be tried again and again.
    let delete = PushRequest::Delete { task_id: TaskId::from(id), id: NAME.to_owned(), tenant: line.tenant() };
    line.call(Operation::DeletePushConfig, Request::Push(delete)).await;
    Delivery { sent: reply.sent, body: Ok(body) }
}

async fn delivered(line: &Line) -> Verdict {
    let Delivery { sent, body } = line.delivery().await;
    match body {
        Ok(Some(_)) => Verdict::pass(),
        Ok(None) => {
            let seconds = line.subject.patience.as_secs();
            Verdict::fail(sent, format!("a webhook on this machine was taken, and not called within {seconds} s"))
        }
        // A refusal that is none of the address has a check of its own.
        Err(verdict) if verdict.has_failed() => Verdict::not_applicable("the webhook was not taken"),
        Err(verdict) => verdict.clone(),
    }
}

async fn payload(line: &Line) -> Verdict {
    let Delivery { sent, body } = line.delivery().await;
    let body = match body {
        Ok(Some(body)) => body,
        Ok(None) => return Verdict::not_applicable("no webhook was called"),
        Err(verdict) => return verdict.clone(),
    };
    let members = ["task", "message", "statusUpdate", "artifactUpdate"];
    let found = members.iter().filter(|member| body.get(member).is_some()).count();
    let is_good =
        if line.is_v1() { found == 1 } else { found == 1 || body["kind"].is_string() || body["id"].is_string() };
    if is_good { Verdict::pass() } else { Verdict::fail(sent, format!("the webhook got {}", short(body))) }
}
