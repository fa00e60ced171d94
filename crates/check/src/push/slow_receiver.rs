//! Checks that a webhook receiver that never responds does not delay the reply to the message that set it.

use std::time::Duration;

use super::{NAME, applies, delete, refused, send_with_webhook, start_receiver};
use crate::interface::TestedInterface;
use crate::reply::ReplyContent;
use crate::verdict::{CheckResult, applies_if, fail};
use crate::wire::{self, SendResult};

/// How much longer it may take: within the noise of a machine, and less than any timeout for a receiver.
const MORE: Duration = Duration::from_secs(2);

pub(crate) async fn not_waited_for(interface: &TestedInterface) -> CheckResult {
    applies(interface)?;
    let usual = interface.first().await.reply.took;
    let is_quick = interface.first_task().await.is_some() && usual + MORE <= interface.agent.patience;
    applies_if(is_quick, "the agent makes no task, or takes too long with it")?;
    let receiver = start_receiver(false).await?;
    let reply = send_with_webhook(interface, &receiver).await;
    let (usual, took) = (usual.as_secs_f64(), reply.took.as_secs_f64());
    if let Some(Ok(SendResult::Task(task))) = reply.result().map(|result| wire::sent(interface.dialect(), result)) {
        let id = task["id"].as_str().unwrap_or_default();
        delete(interface, id, NAME).await;
        if !interface.has_ended(&task) {
            interface.cancel(id).await;
        }
    }
    match reply.content {
        ReplyContent::Result(_) if took < usual + MORE.as_secs_f64() => Ok(()),
        ReplyContent::Result(_) => {
            fail(&reply.sent, format!("it took {took:.1} s, and {usual:.1} s without a webhook"))
        }
        ReplyContent::Missing => {
            fail(&reply.sent, format!("no answer within {took:.1} s; without a webhook it took {usual:.1} s"))
        }
        _ => refused(&reply),
    }
}
