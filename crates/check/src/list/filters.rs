//! Whether lists hold what was asked for, and questions that make no sense are refused.

use serde_json::Value;
use switchboard_a2a::{ErrorKind, ListRequest, Operation, Request, TaskState, Timestamp};

use super::{FAR_FUTURE, listed};
use crate::checks::{Check, Group, Run, Severity};
use crate::interface::TestedInterface;
use crate::verdict::Verdict;
use crate::wire::short;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "list-status",
        group: Group::List,
        title: "a list for one state has tasks in that state, and no others",
        rule: "A2A 1.0 §3.1.4",
        severity: Severity::Must,
        fix: "honour status",
        run: Run::Interface(|interface| Box::pin(status(interface))),
    },
    Check {
        id: "list-after",
        group: Group::List,
        title: "a list of what changed since a time has tasks of that time and later ones, and no others",
        rule: "A2A 1.0 §3.1.4",
        severity: Severity::Must,
        fix: "honour statusTimestampAfter; the time itself is included",
        run: Run::Interface(|interface| Box::pin(after(interface))),
    },
    Check {
        id: "list-no-history",
        group: Group::List,
        title: "a history length of 0 leaves histories out of lists too",
        rule: "A2A 1.0 §3.1.4, §3.2.4",
        severity: Severity::Must,
        fix: "honour historyLength for every task of the list",
        run: Run::Interface(|interface| Box::pin(no_history(interface))),
    },
    Check {
        id: "list-token-unknown",
        group: Group::List,
        title: "a page token that was never given out is refused with -32602",
        rule: "A2A 1.0 §3.1.4, §3.3.2",
        severity: Severity::Should,
        fix: "answer InvalidParamsError; do not begin with the first page again",
        run: Run::Interface(|interface| Box::pin(token_unknown(interface))),
    },
];

const STATES: [TaskState; 8] = [
    TaskState::Submitted,
    TaskState::Working,
    TaskState::Completed,
    TaskState::Failed,
    TaskState::Canceled,
    TaskState::InputRequired,
    TaskState::Rejected,
    TaskState::AuthRequired,
];

/// The first task as it is now.
async fn first(interface: &TestedInterface) -> Result<Value, Verdict> {
    // One that has ended stays as it is.
    interface.ended().await;
    let Some(id) = interface.first_id().await else {
        return Err(Verdict::not_applicable("the agent has made no task"));
    };
    let reply = interface.get(id).await;
    reply.result().cloned().ok_or_else(|| reply.failure().about_task(id))
}

async fn status(interface: &TestedInterface) -> Verdict {
    if !interface.is_v1() {
        return Verdict::not_applicable("version 0.3 has no lists");
    }
    let task = match first(interface).await {
        Ok(task) => task,
        Err(verdict) => return verdict,
    };
    let state = &task["status"]["state"];
    let is_it = |known: &TaskState| serde_json::to_value(known).is_ok_and(|text| text == *state);
    let Some(known) = STATES.into_iter().find(is_it) else {
        return Verdict::not_applicable(format!("the task's state is {}", short(state)));
    };
    // The tasks of an agent are often all in one state: a state that hardly any has tells more.
    let rare = if known == TaskState::Rejected { TaskState::AuthRequired } else { TaskState::Rejected };
    for wanted in [known, rare] {
        let (reply, tasks) =
            match listed(interface, ListRequest { status: Some(wanted), ..ListRequest::default() }).await {
                Ok(listed) => listed,
                Err(verdict) => return verdict,
            };
        let name = serde_json::to_value(wanted).unwrap_or_default();
        if let Some(task) = tasks.iter().find(|task| task["status"]["state"] != name) {
            return Verdict::fail(&reply.sent, format!("a task with {}", short(&task["status"])));
        }
        if wanted == known && tasks.is_empty() {
            return reply
                .failure_because("its own task is not listed")
                .about_task(task["id"].as_str().unwrap_or_default());
        }
    }
    Verdict::pass()
}

async fn after(interface: &TestedInterface) -> Verdict {
    if !interface.is_v1() {
        return Verdict::not_applicable("version 0.3 has no lists");
    }
    let task = match first(interface).await {
        Ok(task) => task,
        Err(verdict) => return verdict,
    };
    let Some(at) = task["status"]["timestamp"].as_str().and_then(Timestamp::parse) else {
        return Verdict::not_applicable("the task has no time");
    };
    let since = |at| ListRequest { status_timestamp_after: at, ..ListRequest::default() };
    let (reply, tasks) = match listed(interface, since(Some(at))).await {
        Ok(listed) => listed,
        Err(verdict) => return verdict,
    };
    let is_older = |task: &&Value| {
        let time = task["status"]["timestamp"].as_str().and_then(Timestamp::parse);
        time.is_some_and(|time| time < at)
    };
    if let Some(task) = tasks.iter().find(is_older) {
        return Verdict::fail(&reply.sent, format!("a task of {}", short(&task["status"]["timestamp"])));
    }
    if tasks.is_empty() {
        let failure = reply.failure_because("the task of that very time is not listed");
        return failure.about_task(task["id"].as_str().unwrap_or_default());
    }
    match listed(interface, since(Timestamp::parse(FAR_FUTURE))).await {
        Ok((_, tasks)) if tasks.is_empty() => Verdict::pass(),
        Ok((reply, _)) => reply.failure_because("there are tasks of the future"),
        Err(verdict) => verdict,
    }
}

async fn no_history(interface: &TestedInterface) -> Verdict {
    let request = ListRequest { history_length: Some(0), ..ListRequest::default() };
    let (reply, tasks) = match listed(interface, request).await {
        Ok(listed) => listed,
        Err(verdict) => return verdict,
    };
    match tasks.iter().find(|task| task["history"].as_array().is_some_and(|history| !history.is_empty())) {
        None => Verdict::pass(),
        Some(task) => Verdict::fail(&reply.sent, format!("a task with \"history\":{}", short(&task["history"]))),
    }
}

async fn token_unknown(interface: &TestedInterface) -> Verdict {
    if !interface.is_v1() {
        return Verdict::not_applicable("version 0.3 has no lists");
    }
    let page_token = Some("never-given-out".to_owned());
    let request = ListRequest { page_token, tenant: interface.tenant(), ..ListRequest::default() };
    let reply = interface.call(Operation::ListTasks, Request::List(request)).await;
    reply.expect_or_bad_request(interface.endpoint.binding, &[ErrorKind::InvalidParams])
}
