//! Checks of the filters of ListTasks, and of page tokens that do not exist.

use serde_json::Value;
use switchboard_a2a::{ErrorKind, ListRequest, Operation, Request, TaskState, Timestamp};

use super::{FAR_FUTURE, listed};
use crate::interface::TestedInterface;
use crate::verdict::{CheckResult, OrSkip, Verdict, applies_if, fail, no_problems};
use crate::wire::{entries, short};

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
async fn first(interface: &TestedInterface) -> CheckResult<Value> {
    // An ended task does not change between two requests.
    interface.ended().await;
    let id = interface.first_id().await.or_skip("the agent has made no task")?;
    let reply = interface.get(id).await;
    reply.result().cloned().map_or_else(|| reply.failure().about_task(id), Ok)
}

pub(crate) async fn status(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 has no lists")?;
    let task = first(interface).await?;
    let state = &task["status"]["state"];
    let is_it = |known: &TaskState| serde_json::to_value(known).is_ok_and(|text| text == *state);
    let known = STATES.into_iter().find(is_it).or_skip(&format!("the task's state is {}", short(state)))?;
    // Often all tasks of an agent are in one state, so a rare state is asked for as well.
    let rare = if known == TaskState::Rejected { TaskState::AuthRequired } else { TaskState::Rejected };
    for wanted in [known, rare] {
        let request = ListRequest { status: Some(wanted), ..ListRequest::default() };
        let (reply, tasks) = listed(interface, request).await?;
        let name = serde_json::to_value(wanted).unwrap_or_default();
        if let Some(task) = tasks.iter().find(|task| task["status"]["state"] != name) {
            return fail(&reply.sent, format!("a task with {}", short(&task["status"])));
        }
        if wanted == known && tasks.is_empty() {
            let id = task["id"].as_str().unwrap_or_default();
            return reply.failure_because("its own task is not listed").about_task(id);
        }
    }
    Ok(())
}

pub(crate) async fn after(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 has no lists")?;
    let task = first(interface).await?;
    let at = task["status"]["timestamp"].as_str().and_then(Timestamp::parse).or_skip("the task has no time")?;
    let since = |at| ListRequest { status_timestamp_after: at, ..ListRequest::default() };
    let (reply, tasks) = listed(interface, since(Some(at))).await?;
    let is_older = |task: &&Value| {
        let time = task["status"]["timestamp"].as_str().and_then(Timestamp::parse);
        time.is_some_and(|time| time < at)
    };
    if let Some(task) = tasks.iter().find(is_older) {
        return fail(&reply.sent, format!("a task of {}", short(&task["status"]["timestamp"])));
    }
    if tasks.is_empty() {
        let id = task["id"].as_str().unwrap_or_default();
        return reply.failure_because("the task of that very time is not listed").about_task(id);
    }
    let (reply, tasks) = listed(interface, since(Timestamp::parse(FAR_FUTURE))).await?;
    if tasks.is_empty() { Ok(()) } else { reply.failure_because("there are tasks of the future") }
}

pub(crate) async fn no_history(interface: &TestedInterface) -> CheckResult {
    let request = ListRequest { history_length: Some(0), ..ListRequest::default() };
    let (reply, tasks) = listed(interface, request).await?;
    let found = tasks.iter().map(|task| &task["history"]).find(|history| entries(history).next().is_some());
    no_problems(found.map(|history| format!("a task with \"history\":{}", short(history))), &reply.sent)
}

pub(crate) async fn token_unknown(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 has no lists")?;
    let page_token = Some("never-given-out".to_owned());
    let request = ListRequest { page_token, tenant: interface.tenant(), ..ListRequest::default() };
    let reply = interface.call(Operation::ListTasks, Request::List(request)).await;
    reply.expect_or_bad_request(interface.endpoint.binding, &[ErrorKind::InvalidParams])
}
