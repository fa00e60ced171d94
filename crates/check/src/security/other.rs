//! Whether a second caller, known to the agent but not the owner, gets at the tasks of the first. Neither may the second
//! learn that they are there: refusals are to be those for tasks that do not exist.

use switchboard_a2a::{ErrorKind, ListRequest, Operation, PushRequest, Request, TaskId};

use crate::answer::{Reply, Said};
use crate::checks::{Check, Group, Run, Severity};
use crate::line::Line;
use crate::question::{Caller, Question};
use crate::verdict::Verdict;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "security-other-read",
        group: Group::Security,
        title: "a second caller cannot read the tasks of the first",
        rule: "A2A 1.0 §13.1, §3.3.2",
        severity: Severity::Must,
        fix: "look for tasks among those of the caller only, and answer TaskNotFoundError for all others",
        run: Run::Interface(|line| Box::pin(read(line))),
    },
    Check {
        id: "security-other-list",
        group: Group::Security,
        title: "the tasks of the first caller are not in the list of a second",
        rule: "A2A 1.0 §3.1.4, §13.1",
        severity: Severity::Must,
        fix: "list the tasks of the caller only, whatever the filter",
        run: Run::Interface(|line| Box::pin(list(line))),
    },
    Check {
        id: "security-other-cancel",
        group: Group::Security,
        title: "a second caller cannot cancel the tasks of the first",
        rule: "A2A 1.0 §13.1, §3.3.2",
        severity: Severity::Must,
        fix: "look for tasks among those of the caller only, and answer TaskNotFoundError for all others",
        run: Run::Interface(|line| Box::pin(cancel(line))),
    },
    Check {
        id: "security-other-subscribe",
        group: Group::Security,
        title: "a second caller cannot listen to the tasks of the first",
        rule: "A2A 1.0 §13.1, §3.3.2",
        severity: Severity::Must,
        fix: "look for tasks among those of the caller only, and answer TaskNotFoundError for all others",
        run: Run::Interface(|line| Box::pin(subscribe(line))),
    },
    Check {
        id: "security-other-answer",
        group: Group::Security,
        title: "a second caller cannot send messages to the tasks of the first",
        rule: "A2A 1.0 §13.1, §3.4.2",
        severity: Severity::Must,
        fix: "look for tasks among those of the caller only, and answer TaskNotFoundError for all others",
        run: Run::Interface(|line| Box::pin(answer(line))),
    },
    Check {
        id: "security-other-webhooks",
        group: Group::Security,
        title: "a second caller cannot see the webhooks of the first",
        rule: "A2A 1.0 §13.1, §3.1.9",
        severity: Severity::Must,
        fix: "look for tasks among those of the caller only, and answer TaskNotFoundError for all others",
        run: Run::Interface(|line| Box::pin(webhooks(line))),
    },
];

/// A task of the first caller's, if there is a second one who is known.
async fn task(line: &Line) -> Result<&str, Verdict> {
    line.subject.second_caller().map_err(Verdict::not_applicable)?;
    let question = line.harmless().map_err(Verdict::not_applicable)?;
    let reply = line.ask(&Question { caller: Caller::Other, ..question }).await;
    if matches!(reply.status, 401 | 403) {
        return Err(Verdict::not_applicable("the key of the second caller is not accepted"));
    }
    line.first_id().await.ok_or_else(|| Verdict::not_applicable("the agent has made no task"))
}

async fn asked(line: &Line, operation: Operation, request: Request) -> Reply {
    line.call_as(Caller::Other, operation, request).await
}

/// Whether somebody is refused as if nothing were there.
fn kept_out(reply: &Reply) -> Verdict {
    match reply.said {
        _ if matches!(reply.status, 401 | 403 | 404) => Verdict::pass(),
        _ if reply.is_refused_with(ErrorKind::TaskNotFound) => Verdict::pass(),
        Said::Refused(_) => reply.complaint_that("the refusal tells that the task is there"),
        Said::Result(_) => reply.complaint_that("the second caller is let in"),
        Said::Unheard(_) => reply.complaint(),
        Said::Nonsense | Said::Nothing => Verdict::not_applicable("the second caller got no answer"),
    }
}

async fn read(line: &Line) -> Verdict {
    let id = match task(line).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    let request = Request::Get { id: TaskId::from(id), history_length: None, tenant: line.tenant() };
    kept_out(&asked(line, Operation::GetTask, request).await)
}

async fn list(line: &Line) -> Verdict {
    if !line.is_v1() {
        return Verdict::not_applicable("version 0.3 has no lists");
    }
    let id = match task(line).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    let request = ListRequest { tenant: line.tenant(), ..ListRequest::default() };
    let reply = asked(line, Operation::ListTasks, Request::List(request)).await;
    let mut tasks = reply.result().and_then(|result| result["tasks"].as_array()).into_iter().flatten();
    match tasks.any(|task| task["id"] == id) {
        true => reply.complaint_that("the second caller is shown it"),
        false => Verdict::pass(),
    }
}

async fn cancel(line: &Line) -> Verdict {
    let id = match task(line).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    let request = Request::Cancel { id: TaskId::from(id), metadata: None, tenant: line.tenant() };
    kept_out(&asked(line, Operation::CancelTask, request).await)
}

async fn subscribe(line: &Line) -> Verdict {
    if !line.subject.can("streaming") {
        return Verdict::not_applicable("the card does not declare streaming");
    }
    let id = match task(line).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    let request = Request::Subscribe { id: TaskId::from(id), tenant: line.tenant() };
    let Ok((question, _)) = line.question(Operation::SubscribeToTask, &request) else {
        return Verdict::not_applicable("the task cannot be asked for");
    };
    let question = Question { caller: Caller::Other, ..question };
    let heard = match line.listen(&question).await {
        Err(heard) => heard,
        Ok(mut listening) => {
            listening.hear(crate::line::Until::First, line.subject.patience).await;
            listening.leave()
        }
    };
    match heard.events.first() {
        Some(frame) => {
            Verdict::fail(&heard.reply.sent, format!("the second caller hears {}", crate::wire::short(frame)))
        }
        None => kept_out(&heard.reply),
    }
}

async fn answer(line: &Line) -> Verdict {
    let id = match task(line).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    kept_out(&asked(line, Operation::SendMessage, line.message_to(TaskId::from(id))).await)
}

async fn webhooks(line: &Line) -> Verdict {
    if !line.subject.can("pushNotifications") {
        return Verdict::not_applicable("the card does not declare webhooks");
    }
    let id = match task(line).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    let list =
        PushRequest::List { task_id: TaskId::from(id), page_size: None, page_token: None, tenant: line.tenant() };
    kept_out(&asked(line, Operation::ListPushConfigs, Request::Push(list)).await)
}
