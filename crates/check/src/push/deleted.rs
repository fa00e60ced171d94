//! Checks that deleting a webhook has a result, if only null: JSON-RPC clients take a response with neither result nor
//! error for none.

use crate::checks::{Check, Group, Must};
use crate::errors::NOT_RPC;
use crate::interface::TestedInterface;
use crate::push::{applies, config_id, create, delete, refused, start_receiver, task};
use crate::verdict::{CheckResult, Verdict, applies_if, skip};

pub(crate) const CHECKS: &[Check] =
    &[Check::of_interface(Group::Push, Must, "push-delete-result", |interface| Box::pin(result(interface)))
        .title("over JSON-RPC, deleting a webhook is answered with a result, if only null")
        .rule("JSON-RPC 2.0 §5; A2A 1.0 §3.1.10; 0.3 §7.8")
        .fix("write \"result\":null, which some libraries leave out like every null")];

async fn result(interface: &TestedInterface) -> CheckResult {
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
