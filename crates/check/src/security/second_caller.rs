//! Whether a second caller, known to the agent but not the owner, gets at the tasks of the first. Neither may the second
//! learn that they are there: refusals are to be those for tasks that do not exist.

use switchboard_a2a::{ErrorKind, ListRequest, Operation, PushRequest, Request, TaskId};

use crate::checks::{Check, Group, Run, Severity};
use crate::interface::TestedInterface;
use crate::reply::{Reply, ReplyContent};
use crate::request::{Caller, TestRequest};
use crate::verdict::Verdict;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "security-other-read",
        group: Group::Security,
        title: "a second caller cannot read the tasks of the first",
        rule: "A2A 1.0 §13.1, §3.3.2",
        severity: Severity::Must,
        fix: "look for tasks among those of the caller only, and answer TaskNotFoundError for all others",
        run: Run::Interface(|interface| Box::pin(read(interface))),
    },
    Check {
        id: "security-other-list",
        group: Group::Security,
        title: "the tasks of the first caller are not in the list of a second",
        rule: "A2A 1.0 §3.1.4, §13.1",
        severity: Severity::Must,
        fix: "list the tasks of the caller only, whatever the filter",
        run: Run::Interface(|interface| Box::pin(list(interface))),
    },
    Check {
        id: "security-other-cancel",
        group: Group::Security,
        title: "a second caller cannot cancel the tasks of the first",
        rule: "A2A 1.0 §13.1, §3.3.2",
        severity: Severity::Must,
        fix: "look for tasks among those of the caller only, and answer TaskNotFoundError for all others",
        run: Run::Interface(|interface| Box::pin(cancel(interface))),
    },
    Check {
        id: "security-other-subscribe",
        group: Group::Security,
        title: "a second caller cannot listen to the tasks of the first",
        rule: "A2A 1.0 §13.1, §3.3.2",
        severity: Severity::Must,
        fix: "look for tasks among those of the caller only, and answer TaskNotFoundError for all others",
        run: Run::Interface(|interface| Box::pin(subscribe(interface))),
    },
    Check {
        id: "security-other-answer",
        group: Group::Security,
        title: "a second caller cannot send messages to the tasks of the first",
        rule: "A2A 1.0 §13.1, §3.4.2",
        severity: Severity::Must,
        fix: "look for tasks among those of the caller only, and answer TaskNotFoundError for all others",
        run: Run::Interface(|interface| Box::pin(answer(interface))),
    },
    Check {
        id: "security-other-webhooks",
        group: Group::Security,
        title: "a second caller cannot see the webhooks of the first",
        rule: "A2A 1.0 §13.1, §3.1.9",
        severity: Severity::Must,
        fix: "look for tasks among those of the caller only, and answer TaskNotFoundError for all others",
        run: Run::Interface(|interface| Box::pin(webhooks(interface))),
    },
];

/// A task of the first caller's, if there is a second one who is known.
async fn task(interface: &TestedInterface) -> Result<&str, Verdict> {
    interface.agent.second_caller().map_err(Verdict::not_applicable)?;
    let test_request = interface.harmless_request().map_err(Verdict::not_applicable)?;
    let reply = interface.ask(&TestRequest { caller: Caller::Second, ..test_request }).await;
    if matches!(reply.status, 401 | 403) {
        return Err(Verdict::not_applicable("the key of the second caller is not accepted"));
    }
    interface.first_id().await.ok_or_else(|| Verdict::not_applicable("the agent has made no task"))
}

async fn asked(interface: &TestedInterface, operation: Operation, request: Request) -> Reply {
    interface.call_as(Caller::Second, operation, request).await
}

/// Whether somebody is refused as if nothing were there.
fn kept_out(reply: &Reply) -> Verdict {
    match reply.content {
        _ if matches!(reply.status, 401 | 403 | 404) => Verdict::pass(),
        _ if reply.is_refused_with(ErrorKind::TaskNotFound) => Verdict::pass(),
        ReplyContent::Error(_) => reply.failure_because("the refusal tells that the task is there"),
        ReplyContent::Result(_) => reply.failure_because("the second caller is let in"),
        ReplyContent::Unknown(_) => reply.failure(),
        ReplyContent::NotA2a | ReplyContent::Missing => Verdict::not_applicable("the second caller got no answer"),
    }
}

async fn read(interface: &TestedInterface) -> Verdict {
    let id = match task(interface).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    let request = Request::Get { id: TaskId::from(id), history_length: None, tenant: interface.tenant() };
    kept_out(&asked(interface, Operation::GetTask, request).await)
}

async fn list(interface: &TestedInterface) -> Verdict {
    if !interface.is_v1() {
        return Verdict::not_applicable("version 0.3 has no lists");
    }
    let id = match task(interface).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    let request = ListRequest { tenant: interface.tenant(), ..ListRequest::default() };
    let reply = asked(interface, Operation::ListTasks, Request::List(request)).await;
    let mut tasks = reply.result().and_then(|result| result["tasks"].as_array()).into_iter().flatten();
    match tasks.any(|task| task["id"] == id) {
        true => reply.failure_because("the second caller is shown it"),
        false => Verdict::pass(),
    }
}

async fn cancel(interface: &TestedInterface) -> Verdict {
    let id = match task(interface).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    let request = Request::Cancel { id: TaskId::from(id), metadata: None, tenant: interface.tenant() };
    kept_out(&asked(interface, Operation::CancelTask, request).await)
}

async fn subscribe(interface: &TestedInterface) -> Verdict {
    if !interface.agent.has_capability("streaming") {
        return Verdict::not_applicable("the card does not declare streaming");
    }
    let id = match task(interface).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    let request = Request::Subscribe { id: TaskId::from(id), tenant: interface.tenant() };
    let Ok((test_request, _)) = interface.encode(Operation::SubscribeToTask, &request) else {
        return Verdict::not_applicable("the task cannot be asked for");
    };
    let test_request = TestRequest { caller: Caller::Second, ..test_request };
    let recorded = match interface.request_stream(&test_request).await {
        Err(recorded) => recorded,
        Ok(mut stream) => {
            stream.read(crate::interface::ReadUntil::First, interface.agent.patience).await;
            stream.close()
        }
    };
    match recorded.events.first() {
        Some(frame) => {
            Verdict::fail(&recorded.reply.sent, format!("the second caller hears {}", crate::wire::short(frame)))
        }
        None => kept_out(&recorded.reply),
    }
}

async fn answer(interface: &TestedInterface) -> Verdict {
    let id = match task(interface).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    kept_out(&asked(interface, Operation::SendMessage, interface.message_to(TaskId::from(id))).await)
}

async fn webhooks(interface: &TestedInterface) -> Verdict {
    if !interface.agent.has_capability("pushNotifications") {
        return Verdict::not_applicable("the card does not declare webhooks");
    }
    let id = match task(interface).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    let list =
        PushRequest::List { task_id: TaskId::from(id), page_size: None, page_token: None, tenant: interface.tenant() };
    kept_out(&asked(interface, Operation::ListPushConfigs, Request::Push(list)).await)
}
