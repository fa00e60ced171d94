//! Checks of webhook deliveries, with one message and a receiver on this machine.

use serde_json::Value;

use super::{NAME, applies, delete, refused, send_with_webhook, start_receiver};
use crate::interface::TestedInterface;
use crate::reply::ReplyContent;
use crate::verdict::{CheckResult, OrSkip, applies_if, fail, skip};
use crate::wire::{self, SendResult, short};

/// The request that was sent with a webhook, and the body the webhook got, if it was called.
pub(crate) type Delivery = CheckResult<(String, Option<Value>)>;

/// Sends a message with a webhook, and waits for the call.
pub(crate) async fn deliver(interface: &TestedInterface) -> Delivery {
    applies(interface)?;
    applies_if(interface.first_task().await.is_some(), "the agent has made no task")?;
    let mut receiver = start_receiver(true).await?;
    let reply = send_with_webhook(interface, &receiver).await;
    let Some(result) = reply.result() else {
        applies_if(!matches!(reply.content, ReplyContent::Missing), "the message was not answered in time")?;
        return refused(&reply);
    };
    let Ok(SendResult::Task(task)) = wire::sent(interface.dialect(), result) else {
        return skip("the agent has made no task");
    };
    let id = task["id"].as_str().unwrap_or_default();
    if !interface.has_ended(&task) {
        // It is ours, and no follow-up will come.
        interface.cancel(id).await;
    }
    let body = receiver.next(interface.agent.patience).await;
    // Deliveries that are left would be retried.
    delete(interface, id, NAME).await;
    Ok((reply.sent, body))
}

pub(crate) async fn delivered(interface: &TestedInterface) -> CheckResult {
    match interface.delivery().await {
        Ok((_, Some(_))) => Ok(()),
        Ok((sent, None)) => {
            let seconds = interface.agent.patience.as_secs();
            fail(sent, format!("a webhook on this machine was taken, and not called within {seconds} s"))
        }
        // A refusal for another reason than the address has a check of its own.
        Err(problem) if problem.is_failure => skip("the webhook was not taken"),
        Err(problem) => Err(problem.clone()),
    }
}

pub(crate) async fn payload(interface: &TestedInterface) -> CheckResult {
    let (sent, body) = interface.delivery().await.as_ref().map_err(Clone::clone)?;
    let body = body.as_ref().or_skip("no webhook was called")?;
    let members = ["task", "message", "statusUpdate", "artifactUpdate"];
    let found = members.iter().filter(|member| body.get(member).is_some()).count();
    let is_v03 = !interface.is_v1() && (body["kind"].is_string() || body["id"].is_string());
    if found == 1 || is_v03 { Ok(()) } else { fail(sent, format!("the webhook got {}", short(body))) }
}
