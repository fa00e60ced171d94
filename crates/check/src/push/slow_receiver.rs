//! Whether a receiver that takes everything and answers nothing holds up the agent's other callers: one message without a
//! webhook and one with such a one are to take the same time.

use std::time::Duration;

use switchboard_a2a::{Operation, PushRequest, Request, SendConfiguration, TaskId};

use super::{NAME, config, refused};
use crate::checks::{Check, Group, Run, Severity};
use crate::interface::TestedInterface;
use crate::receiver::Receiver;
use crate::reply::ReplyContent;
use crate::security::is_loopback;
use crate::verdict::Verdict;
use crate::wire;

pub(crate) const CHECKS: &[Check] = &[Check {
    id: "push-not-waited-for",
    group: Group::Push,
    title: "a webhook whose receiver never answers does not hold up the answer to its message",
    rule: "A2A 1.0 §13.2 leaves it open",
    severity: Severity::Quality,
    fix: "call webhooks from a queue of their own, not before the event is told to the caller",
    run: Run::Interface(|interface| Box::pin(not_waited_for(interface))),
}];

/// How much longer it may take: what machines need at times, and less than any patience with a receiver.
const MORE: Duration = Duration::from_secs(2);

async fn not_waited_for(interface: &TestedInterface) -> Verdict {
    if !interface.agent.has_capability("pushNotifications") {
        return Verdict::not_applicable("the card does not declare webhooks");
    }
    if !is_loopback(&interface.endpoint.url) {
        return Verdict::not_applicable("the agent is elsewhere and cannot call this machine");
    }
    let usual = interface.first().await.reply.took;
    if interface.first_task().await.is_none() || usual + MORE > interface.agent.patience {
        return Verdict::not_applicable("the agent makes no task, or takes too long with it");
    }
    let Ok(receiver) = Receiver::start(false).await else {
        return Verdict::not_applicable("no port could be opened for its webhook");
    };
    let mut request = interface.message(false);
    let webhook = config(interface, &receiver.url(), None);
    request.configuration =
        Some(SendConfiguration { task_push_notification_config: Some(webhook), ..SendConfiguration::default() });
    let reply = interface.call(Operation::SendMessage, Request::Send(request)).await;
    let (usual, took) = (usual.as_secs_f64(), reply.took.as_secs_f64());
    if let Some(Ok(wire::SendResult::Task(task))) = reply.result().map(|result| wire::sent(interface.dialect(), result))
    {
        let id = task["id"].as_str().unwrap_or_default();
        let delete = PushRequest::Delete { task_id: TaskId::from(id), id: NAME.to_owned(), tenant: interface.tenant() };
        interface.call(Operation::DeletePushConfig, Request::Push(delete)).await;
        if !interface.has_ended(&task) {
            interface.cancel(id).await;
        }
    }
    match reply.content {
        ReplyContent::Result(_) if took < usual + MORE.as_secs_f64() => Verdict::pass(),
        ReplyContent::Result(_) => {
            Verdict::fail(&reply.sent, format!("it took {took:.1} s, and {usual:.1} s without a webhook"))
        }
        ReplyContent::Missing => {
            Verdict::fail(&reply.sent, format!("no answer within {took:.1} s; without a webhook it took {usual:.1} s"))
        }
        _ => refused(&reply),
    }
}
