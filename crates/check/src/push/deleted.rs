//! Whether deleting a webhook is answered with a result, though there is nothing to say: clients of JSON-RPC take an answer
//! without a result and without an error for none.

use switchboard_a2a::{Operation, PushRequest, Request, TaskId};

use crate::checks::{Check, Group, Run, Severity};
use crate::errors::NOT_RPC;
use crate::interface::TestedInterface;
use crate::push::{config, config_id, exempt, refused, task};
use crate::receiver::Receiver;
use crate::verdict::Verdict;

pub(crate) const CHECKS: &[Check] = &[Check {
    id: "push-delete-result",
    group: Group::Push,
    title: "over JSON-RPC, deleting a webhook is answered with a result, if only null",
    rule: "JSON-RPC 2.0 §5; A2A 1.0 §3.1.10; 0.3 §7.8",
    severity: Severity::Must,
    fix: "write \"result\":null, which some libraries leave out like every null",
    run: Run::Interface(|interface| Box::pin(result(interface))),
}];

async fn result(interface: &TestedInterface) -> Verdict {
    if !interface.is_rpc() {
        return Verdict::not_applicable(NOT_RPC);
    }
    if let Some(verdict) = exempt(interface) {
        return verdict;
    }
    let Some((id, _)) = task(interface).await else {
        return Verdict::not_applicable("the agent has made no task");
    };
    let Ok(receiver) = Receiver::start(true).await else {
        return Verdict::not_applicable("no port could be opened for its webhook");
    };
    let create = PushRequest::Create(config(interface, &receiver.url(), Some(&id)));
    let set = interface.call(Operation::CreatePushConfig, Request::Push(create)).await;
    let Some(name) = set.result().and_then(|result| config_id(interface.dialect(), result)) else {
        // What is wrong with that has a check of its own.
        let verdict = refused(&set);
        return if verdict.is_failure() { Verdict::not_applicable("no webhook could be set") } else { verdict };
    };
    let delete = PushRequest::Delete { task_id: TaskId::from(id.as_str()), id: name, tenant: interface.tenant() };
    let deleted = interface.call(Operation::DeletePushConfig, Request::Push(delete)).await;
    match (deleted.result(), &deleted.json) {
        (Some(_), Some(json)) if json.get("result").is_some() => Verdict::pass(),
        (Some(_), _) => deleted.failure_because("neither a result nor an error").about_task(&id),
        (None, _) => Verdict::not_applicable("the webhook could not be deleted"),
    }
}
