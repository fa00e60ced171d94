//! Whether questions about webhooks that are not there are answered as what they are.

use switchboard_a2a::{ErrorKind, Operation, PushRequest, Request, TaskId};

use crate::checks::{Check, Group, Run, Severity};
use crate::interface::TestedInterface;
use crate::reply::Reply;
use crate::verdict::Verdict;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "push-unknown-task",
        group: Group::Push,
        title: "the webhooks of a task that does not exist are refused with -32001",
        rule: "A2A 1.0 §3.1.8, §3.1.9",
        severity: Severity::Must,
        fix: "answer TaskNotFoundError",
        run: Run::Interface(|interface| Box::pin(unknown_task(interface))),
    },
    Check {
        id: "push-unknown-config",
        group: Group::Push,
        title: "a webhook that does not exist is refused with -32001",
        rule: "A2A 1.0 §3.1.8",
        severity: Severity::Must,
        fix: "answer TaskNotFoundError",
        run: Run::Interface(|interface| Box::pin(unknown_config(interface))),
    },
    Check {
        id: "push-delete-again",
        group: Group::Push,
        title: "deleting a webhook that is gone already does no harm",
        rule: "A2A 1.0 §3.1.10",
        severity: Severity::Must,
        fix: "answer as if it had been there, or with TaskNotFoundError",
        run: Run::Interface(|interface| Box::pin(delete_again(interface))),
    },
];

/// The name of a webhook that nobody has.
const NONE: &str = "a2a-check-none";

/// Why it need not work here, if it need not.
fn exempt(interface: &TestedInterface) -> Option<Verdict> {
    let why = match () {
        () if !interface.agent.has_capability("pushNotifications") => "the card does not declare webhooks",
        () if !interface.is_v1() => "version 0.3 leaves it open",
        () => return None,
    };
    Some(Verdict::not_applicable(why))
}

async fn asked(interface: &TestedInterface, operation: Operation, request: PushRequest) -> Reply {
    interface.call(operation, Request::Push(request)).await
}

async fn unknown_task(interface: &TestedInterface) -> Verdict {
    if let Some(verdict) = exempt(interface) {
        return verdict;
    }
    let (task_id, tenant) = (TaskId::generate(), interface.tenant());
    let list = PushRequest::List { task_id, page_size: None, page_token: None, tenant };
    asked(interface, Operation::ListPushConfigs, list).await.expect(&[ErrorKind::TaskNotFound])
}

async fn unknown_config(interface: &TestedInterface) -> Verdict {
    if let Some(verdict) = exempt(interface) {
        return verdict;
    }
    let Some(id) = interface.first_id().await else {
        return Verdict::not_applicable("the agent has made no task");
    };
    let get = PushRequest::Get { task_id: TaskId::from(id), id: Some(NONE.to_owned()), tenant: interface.tenant() };
    asked(interface, Operation::GetPushConfig, get).await.expect(&[ErrorKind::TaskNotFound]).about_task(id)
}

async fn delete_again(interface: &TestedInterface) -> Verdict {
    if let Some(verdict) = exempt(interface) {
        return verdict;
    }
    let Some(id) = interface.first_id().await else {
        return Verdict::not_applicable("the agent has made no task");
    };
    let delete = PushRequest::Delete { task_id: TaskId::from(id), id: NONE.to_owned(), tenant: interface.tenant() };
    let reply = asked(interface, Operation::DeletePushConfig, delete).await;
    if reply.result().is_some() { Verdict::pass() } else { reply.expect(&[ErrorKind::TaskNotFound]).about_task(id) }
}
