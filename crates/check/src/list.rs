//! Whether lists of tasks are in order, in pages, and as slim as they should be. Only version 1.0 has them.

pub(crate) mod filters;

use serde_json::{Value, json};
use switchboard_a2a::{ErrorKind, ListRequest, Operation, Request, Timestamp};

use crate::checks::{Check, Group, Run, Severity};
use crate::interface::TestedInterface;
use crate::reply::Reply;
use crate::verdict::Verdict;
use crate::wire::short;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "list-members",
        group: Group::List,
        title: "a list has tasks, nextPageToken, and sizes that are true, also where it ends or is empty",
        rule: "A2A 1.0 §3.1.4",
        severity: Severity::Must,
        fix: "always write tasks, nextPageToken, pageSize and totalSize; nextPageToken is \"\" on the last page",
        run: Run::Interface(|interface| Box::pin(members(interface))),
    },
    Check {
        id: "list-order",
        group: Group::List,
        title: "the task that changed last comes first",
        rule: "A2A 1.0 §3.1.4",
        severity: Severity::Must,
        fix: "order by the status timestamp, newest first",
        run: Run::Interface(|interface| Box::pin(order(interface))),
    },
    Check {
        id: "list-artifacts-absent",
        group: Group::List,
        title: "artifacts are left out unless they are asked for",
        rule: "A2A 1.0 §3.1.4",
        severity: Severity::Must,
        fix: "leave the member artifacts out of every task while includeArtifacts is not true",
        run: Run::Interface(|interface| Box::pin(artifacts_absent(interface))),
    },
    Check {
        id: "list-artifacts-asked",
        group: Group::List,
        title: "artifacts are there when they are asked for",
        rule: "A2A 1.0 §3.1.4",
        severity: Severity::Should,
        fix: "write the member artifacts, if need be empty, where includeArtifacts is true",
        run: Run::Interface(|interface| Box::pin(artifacts_asked(interface))),
    },
    Check {
        id: "list-page-size",
        group: Group::List,
        title: "a page size below 1 or above 100 is refused with -32602",
        rule: "A2A 1.0 §3.1.4, §6.5",
        severity: Severity::Should,
        fix: "answer InvalidParamsError for sizes outside 1 to 100",
        run: Run::Interface(|interface| Box::pin(page_size(interface))),
    },
    Check {
        id: "list-pages",
        group: Group::List,
        title: "pages hold no more than was asked for, and the next one goes on with other tasks",
        rule: "A2A 1.0 §3.1.4",
        severity: Severity::Must,
        fix: "honour pageSize and pageToken",
        run: Run::Interface(|interface| Box::pin(pages(interface))),
    },
    Check {
        id: "list-cursor",
        group: Group::List,
        title: "the token of the next page is a cursor, not the number of a task or a page",
        rule: "A2A 1.0 §3.1.4",
        severity: Severity::Must,
        fix: "make the token of the last task's place (its timestamp and id), so that new tasks move nothing",
        run: Run::Interface(|interface| Box::pin(cursor(interface))),
    },
    Check {
        id: "list-context",
        group: Group::List,
        title: "a list for one context has the tasks of that context, and no others",
        rule: "A2A 1.0 §3.1.4",
        severity: Severity::Must,
        fix: "honour contextId",
        run: Run::Interface(|interface| Box::pin(context(interface))),
    },
];

/// Later than any task of today's.
pub(crate) const FAR_FUTURE: &str = "2999-01-01T00:00:00.000Z";

/// Lists, once there is something to list.
pub(crate) async fn listed(interface: &TestedInterface, request: ListRequest) -> Result<(Reply, Vec<Value>), Verdict> {
    if !interface.is_v1() {
        return Err(Verdict::not_applicable("version 0.3 has no lists"));
    }
    if interface.first_task().await.is_none() {
        return Err(Verdict::not_applicable("the agent has made no task"));
    }
    let request = ListRequest { tenant: interface.tenant(), ..request };
    let reply = interface.call(Operation::ListTasks, Request::List(request)).await;
    match reply.result().map(|result| result["tasks"].as_array().cloned()) {
        // That an empty list has no member for it is looked for once.
        Some(tasks) => Ok((reply, tasks.unwrap_or_default())),
        None => Err(reply.failure()),
    }
}

async fn members(interface: &TestedInterface) -> Verdict {
    let future = ListRequest { status_timestamp_after: Timestamp::parse(FAR_FUTURE), ..ListRequest::default() };
    for request in [ListRequest::default(), future] {
        let (reply, tasks) = match listed(interface, request).await {
            Ok(listed) => listed,
            Err(verdict) => return verdict,
        };
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
        if !problems.is_empty() {
            return Verdict::of(&problems, &reply.sent);
        }
    }
    Verdict::pass()
}

async fn order(interface: &TestedInterface) -> Verdict {
    // Two tasks at least, so that there is an order.
    interface.non_blocking_reply().await;
    let (reply, tasks) = match listed(interface, ListRequest::default()).await {
        Ok(listed) => listed,
        Err(verdict) => return verdict,
    };
    let times: Vec<_> = tasks
        .iter()
        .filter_map(|task| switchboard_a2a::Timestamp::parse(task["status"]["timestamp"].as_str()?))
        .collect();
    if times.len() < 2 {
        return Verdict::not_applicable("the list has fewer than two tasks with a time");
    }
    match times.windows(2).find(|pair| pair[0] < pair[1]) {
        None => Verdict::pass(),
        Some(pair) => Verdict::fail(&reply.sent, format!("a task of {} before one of {}", pair[0], pair[1])),
    }
}

async fn artifacts_absent(interface: &TestedInterface) -> Verdict {
    let (reply, tasks) = match listed(interface, ListRequest::default()).await {
        Ok(listed) => listed,
        Err(verdict) => return verdict,
    };
    match tasks.iter().find(|task| task.get("artifacts").is_some()) {
        None => Verdict::pass(),
        Some(task) => Verdict::fail(&reply.sent, format!("a task with \"artifacts\":{}", short(&task["artifacts"]))),
    }
}

/// How many pages are looked through for a task without artifacts.
const PAGES: usize = 5;

async fn artifacts_asked(interface: &TestedInterface) -> Verdict {
    let mut page_token = None;
    for _ in 0..PAGES {
        // They may be large, so only a few at a time.
        let page_size = Some(2);
        let request = ListRequest { include_artifacts: true, page_size, page_token, ..ListRequest::default() };
        let (reply, tasks) = match listed(interface, request).await {
            Ok(listed) => listed,
            Err(verdict) => return verdict,
        };
        if let Some(task) = tasks.iter().find(|task| !task["artifacts"].is_array()) {
            return Verdict::fail(&reply.sent, format!("a task without artifacts: {}", short(task)));
        }
        let token = reply.result().and_then(|result| result["nextPageToken"].as_str()).unwrap_or_default();
        if token.is_empty() {
            break;
        }
        page_token = Some(token.to_owned());
    }
    Verdict::pass()
}

async fn page_size(interface: &TestedInterface) -> Verdict {
    if !interface.is_v1() {
        return Verdict::not_applicable("version 0.3 has no lists");
    }
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
    Verdict::pass()
}

/// A page of so many tasks.
async fn page(
    interface: &TestedInterface,
    size: u32,
    page_token: Option<String>,
) -> Result<(Reply, Vec<Value>), Verdict> {
    let request = ListRequest { page_size: Some(size), page_token, ..ListRequest::default() };
    let (reply, tasks) = listed(interface, request).await?;
    match tasks.len() as u64 > u64::from(size) {
        true => Err(Verdict::fail(&reply.sent, format!("{} tasks on a page of {size}", tasks.len()))),
        false => Ok((reply, tasks)),
    }
}

/// The first page of so many tasks, its first task and its token.
async fn first_page(interface: &TestedInterface, size: u32) -> Result<(Reply, Value, String), Verdict> {
    // Three tasks at least, so that a second page can be too long.
    interface.non_blocking_reply().await;
    interface.running().await;
    let (reply, tasks) = page(interface, size, None).await?;
    let token = reply.result().and_then(|result| result["nextPageToken"].as_str()).unwrap_or_default().to_owned();
    match tasks.into_iter().next() {
        Some(task) if !token.is_empty() => Ok((reply, task, token)),
        _ => Err(Verdict::not_applicable("there is one page only")),
    }
}

async fn pages(interface: &TestedInterface) -> Verdict {
    let (_, first, token) = match first_page(interface, 1).await {
        Ok(page) => page,
        Err(verdict) => return verdict,
    };
    let (reply, tasks) = match page(interface, 1, Some(token)).await {
        Ok(listed) => listed,
        Err(verdict) => return verdict,
    };
    match tasks.first() {
        Some(task) if task["id"] != first["id"] => Verdict::pass(),
        Some(_) => reply.failure_because("the second page has the task of the first"),
        None => reply.failure_because("a page was announced that is empty"),
    }
}

/// Where something new has come between two pages, whatever is counted has moved. In a list that begins with the oldest
/// nothing moves; there tokens are taken for numbers if they are as high as the number of tasks before them.
async fn cursor(interface: &TestedInterface) -> Verdict {
    let (_, first, token) = match first_page(interface, 1).await {
        Ok(page) => page,
        Err(verdict) if verdict.is_failure() => return Verdict::not_applicable("the list has no pages"),
        Err(verdict) => return verdict,
    };
    if interface.start_task().await.is_none() {
        return Verdict::not_applicable("nothing new could be begun");
    }
    let Ok((reply, tasks)) = page(interface, 1, Some(token.clone())).await else {
        return Verdict::not_applicable("the list has no second page any more");
    };
    if tasks.iter().any(|task| task["id"] == first["id"]) {
        let seen =
            format!("after a new task, the page of the token {token:?} has the task of the first page once more");
        return Verdict::fail(&reply.sent, seen);
    }
    match first_page(interface, 2).await {
        Ok((reply, _, other)) if token == "1" && other == "2" => {
            Verdict::fail(&reply.sent, "the token is \"1\" after one task, and \"2\" after two")
        }
        _ => Verdict::pass(),
    }
}

async fn context(interface: &TestedInterface) -> Verdict {
    let id = interface.first_task().await.and_then(|task| task["contextId"].as_str()).map(str::to_owned);
    let Some(id) = id else {
        return Verdict::not_applicable("the agent has made no task in a context");
    };
    let request = ListRequest { context_id: Some(id.as_str().into()), ..ListRequest::default() };
    let (reply, tasks) = match listed(interface, request).await {
        Ok(listed) => listed,
        Err(verdict) => return verdict,
    };
    if tasks.is_empty() {
        return reply
            .failure_because("its own task is not listed")
            .about_task(interface.first_id().await.unwrap_or_default());
    }
    match tasks.iter().find(|task| task["contextId"] != id.as_str()) {
        None => Verdict::pass(),
        Some(task) => Verdict::fail(&reply.sent, format!("a task of another context: {}", short(task))),
    }
}
