//! Checks of ListTasks: members, order and pages. Only version 1.0 has it.

pub(crate) mod filters;

use serde_json::{Value, json};
use switchboard_a2a::{ErrorKind, ListRequest, Operation, Request, Timestamp};

use crate::interface::TestedInterface;
use crate::reply::Reply;
use crate::verdict::{CheckResult, OrSkip, Verdict, applies_if, fail, no_problems, skip};
use crate::wire::short;

pub(crate) const FAR_FUTURE: &str = "2999-01-01T00:00:00.000Z";

/// Lists tasks, after one has been created.
pub(crate) async fn listed(interface: &TestedInterface, request: ListRequest) -> CheckResult<(Reply, Vec<Value>)> {
    applies_if(interface.is_v1(), "version 0.3 has no lists")?;
    applies_if(interface.first_task().await.is_some(), "the agent has made no task")?;
    let request = ListRequest { tenant: interface.tenant(), ..request };
    let reply = interface.call(Operation::ListTasks, Request::List(request)).await;
    match reply.result().map(|result| result["tasks"].as_array().cloned()) {
        // A missing member has its own check.
        Some(tasks) => Ok((reply, tasks.unwrap_or_default())),
        None => reply.failure(),
    }
}

pub(crate) async fn members(interface: &TestedInterface) -> CheckResult {
    let future = ListRequest { status_timestamp_after: Timestamp::parse(FAR_FUTURE), ..ListRequest::default() };
    for request in [ListRequest::default(), future] {
        let (reply, tasks) = listed(interface, request).await?;
        let result = reply.result().unwrap_or(&Value::Null);
        let mut problems = Vec::new();
        if !result["tasks"].is_array() {
            problems.push(format!("tasks is {}", short(&result["tasks"])));
        }
        if !result["nextPageToken"].is_string() {
            problems.push(format!("nextPageToken is {}", short(&result["nextPageToken"])));
        }
        for member in ["pageSize", "totalSize"] {
            match result[member].as_u64() {
                None => problems.push(format!("{member} is {}", short(&result[member]))),
                Some(size) if size < tasks.len() as u64 => {
                    problems.push(format!("{member} is {size}, and there are {} tasks", tasks.len()));
                }
                Some(_) => {}
            }
        }
        no_problems(problems, &reply.sent)?;
    }
    Ok(())
}

pub(crate) async fn order(interface: &TestedInterface) -> CheckResult {
    // An order needs two tasks.
    interface.non_blocking_reply().await;
    let (reply, tasks) = listed(interface, ListRequest::default()).await?;
    let times = tasks.iter().filter_map(|task| Timestamp::parse(task["status"]["timestamp"].as_str()?));
    let times: Vec<Timestamp> = times.collect();
    applies_if(times.len() >= 2, "the list has fewer than two tasks with a time")?;
    let wrong = times.windows(2).find(|pair| pair[0] < pair[1]);
    no_problems(wrong.map(|pair| format!("a task of {} before one of {}", pair[0], pair[1])), &reply.sent)
}

pub(crate) async fn artifacts_absent(interface: &TestedInterface) -> CheckResult {
    let (reply, tasks) = listed(interface, ListRequest::default()).await?;
    let found = tasks.iter().find_map(|task| task.get("artifacts"));
    no_problems(found.map(|artifacts| format!("a task with \"artifacts\":{}", short(artifacts))), &reply.sent)
}

/// How many pages are read to find a task without artifacts.
const PAGES: usize = 5;

pub(crate) async fn artifacts_asked(interface: &TestedInterface) -> CheckResult {
    let mut page_token = None;
    for _ in 0..PAGES {
        // Artifacts may be large.
        let page_size = Some(2);
        let request = ListRequest { include_artifacts: true, page_size, page_token, ..ListRequest::default() };
        let (reply, tasks) = listed(interface, request).await?;
        if let Some(task) = tasks.iter().find(|task| !task["artifacts"].is_array()) {
            return fail(&reply.sent, format!("a task without artifacts: {}", short(task)));
        }
        let token = reply.result().and_then(|result| result["nextPageToken"].as_str()).unwrap_or_default();
        if token.is_empty() {
            break;
        }
        page_token = Some(token.to_owned());
    }
    Ok(())
}

pub(crate) async fn page_size(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 has no lists")?;
    for size in [0, 101] {
        let test_request = match interface.is_rpc() {
            true => interface.rpc("ListTasks", json!({ "pageSize": size })),
            false => interface.rest("GET", &format!("/tasks?pageSize={size}"), None),
        };
        let reply = interface.ask(&test_request).await;
        let verdict = reply.expect_or_bad_request(interface.endpoint.binding, &[ErrorKind::InvalidParams]);
        if verdict.is_failure() {
            return verdict;
        }
    }
    Ok(())
}

async fn page(interface: &TestedInterface, size: u32, page_token: Option<String>) -> CheckResult<(Reply, Vec<Value>)> {
    let request = ListRequest { page_size: Some(size), page_token, ..ListRequest::default() };
    let (reply, tasks) = listed(interface, request).await?;
    match tasks.len() as u64 > u64::from(size) {
        true => fail(&reply.sent, format!("{} tasks on a page of {size}", tasks.len())),
        false => Ok((reply, tasks)),
    }
}

/// The first page, its first task and its token.
async fn first_page(interface: &TestedInterface, size: u32) -> CheckResult<(Reply, Value, String)> {
    // Three tasks at least, so that a second page can be too large.
    interface.non_blocking_reply().await;
    interface.running().await;
    let (reply, tasks) = page(interface, size, None).await?;
    let token = reply.result().and_then(|result| result["nextPageToken"].as_str()).unwrap_or_default().to_owned();
    match tasks.into_iter().next() {
        Some(task) if !token.is_empty() => Ok((reply, task, token)),
        _ => skip("there is one page only"),
    }
}

pub(crate) async fn pages(interface: &TestedInterface) -> CheckResult {
    let (_, first, token) = first_page(interface, 1).await?;
    let (reply, tasks) = page(interface, 1, Some(token)).await?;
    match tasks.first() {
        Some(task) if task["id"] != first["id"] => Ok(()),
        Some(_) => reply.failure_because("the second page has the task of the first"),
        None => reply.failure_because("a page was announced that is empty"),
    }
}

/// A new task between two pages shifts offsets, but not cursors. In a list that begins with the oldest task nothing
/// shifts; there a token that equals the number of tasks before it counts as an offset.
pub(crate) async fn cursor(interface: &TestedInterface) -> CheckResult {
    let page_of_one = first_page(interface, 1).await;
    applies_if(!page_of_one.is_failure(), "the list has no pages")?;
    let (_, first, token) = page_of_one?;
    applies_if(interface.start_task().await.is_some(), "nothing new could be begun")?;
    let Ok((reply, tasks)) = page(interface, 1, Some(token.clone())).await else {
        return skip("the list has no second page any more");
    };
    if tasks.iter().any(|task| task["id"] == first["id"]) {
        let seen =
            format!("after a new task, the page of the token {token:?} has the task of the first page once more");
        return fail(&reply.sent, seen);
    }
    match first_page(interface, 2).await {
        Ok((reply, _, other)) if token == "1" && other == "2" => {
            fail(&reply.sent, "the token is \"1\" after one task, and \"2\" after two")
        }
        _ => Ok(()),
    }
}

pub(crate) async fn context(interface: &TestedInterface) -> CheckResult {
    let id = interface.first_task().await.and_then(|task| task["contextId"].as_str()).map(str::to_owned);
    let id = id.or_skip("the agent has made no task in a context")?;
    let request = ListRequest { context_id: Some(id.as_str().into()), ..ListRequest::default() };
    let (reply, tasks) = listed(interface, request).await?;
    if tasks.is_empty() {
        return reply
            .failure_because("its own task is not listed")
            .about_task(interface.first_id().await.unwrap_or_default());
    }
    let other = tasks.iter().find(|task| task["contextId"] != id.as_str());
    no_problems(other.map(|task| format!("a task of another context: {}", short(task))), &reply.sent)
}
