//! `GET /api/tasks`: tasks of the caller, with a role those of all callers; one of them; and stopping one.

use http::{Method, Response, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};
use switchboard_a2a::{Task, TaskId, TaskState, Timestamp};
use switchboard_engine::store::TaskRow;
use switchboard_engine::store::lineage::Via;
use switchboard_engine::store::survey::SurveyQuery;
use switchboard_engine::{Address, Caller, CallerId, CallerRole, Error, ReadWithin, state_label};
use switchboard_server::page_token::PageTokens;
use switchboard_server::{Body, SMALL_RESPONSE};

use super::error::ApiError;
use super::request::{ApiRequest, wrong};
use super::route::{Parameter, Route};
use crate::audit::Act;
use crate::feed::View;
use crate::task_rows::{CallerNames, owner_of, shown, visible};

pub(super) const LIST: Route = Route::get("/api/tasks", "List tasks, newest first", |request| Box::pin(list(request)))
    .parameters(&[
        Parameter::new("agent", "Only tasks of this agent."),
        Parameter::new("owner", "Only tasks of this caller; for keys with a role."),
        Parameter::new("state", "Only tasks in this state, such as `working` or `input_required`.").words(&[
            "submitted",
            "working",
            "input_required",
            "auth_required",
            "completed",
            "failed",
            "canceled",
            "rejected",
        ]),
        Parameter::new("via", "Only tasks that came this way: `a2a`, `api`, `cron`, `route` or `channel`.")
            .words(&["a2a", "api", "cron", "route", "channel"]),
        Parameter::new("since", "Only tasks with a status at or after this time, in RFC 3339.").time(),
        Parameter::new("before", "Only tasks with a status before this time, in RFC 3339.").time(),
        Parameter::new("q", "Only tasks whose id or conversation begins so."),
        Parameter::new("pageSize", "Tasks on a page, 1 to 100; 50 by default.").integer(),
        Parameter::new("after", "The token under next of the page before."),
    ])
    .refusals(&[(403, "FORBIDDEN")]);
pub(super) const SHOW: Route = Route::get("/api/tasks/{id}", "Show a task", |request| Box::pin(show(request)));
pub(super) const CANCEL: Route =
    Route::new(Method::POST, "/api/tasks/{id}:cancel", "Stop a task of any caller", |request| {
        Box::pin(cancel(request))
    })
    .role(CallerRole::Operator)
    .body(&[])
    .refusals(&[(409, "NOT_RUNNING")]);

const STATES: [TaskState; 8] = [
    TaskState::Submitted,
    TaskState::Working,
    TaskState::InputRequired,
    TaskState::AuthRequired,
    TaskState::Completed,
    TaskState::Failed,
    TaskState::Canceled,
    TaskState::Rejected,
];

async fn list(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let size = request.number("pageSize", 50, 1..=100)?;
    let (mut query, tokens) = query(&request)?;
    query.via = request.word("via", &Via::ALL.map(|via| (via.name(), via)))?;
    query.prefix = request.value("q").map(str::to_owned);
    query.page_size = size;
    let page = request.hub.parts.store.survey(query).await?;
    let names = CallerNames::read(request.hub).await?;
    let mut items = Vec::with_capacity(page.tasks.len());
    for row in &page.tasks {
        items.push(shown(request.hub, &names, row).await?);
    }
    let mut answer = json!({ "items": items });
    if let Some(next) = page.next {
        answer["next"] = tokens.write(next).into();
    }
    Ok(request.answer(StatusCode::OK, &answer))
}

/// What the parameters ask for that all lists of tasks have, and the tokens of its pages.
pub(super) fn query(request: &ApiRequest<'_>) -> Result<(SurveyQuery, PageTokens), ApiError> {
    let view = View::of(request.caller());
    let owner = request.value("owner").map(CallerId::from);
    if !view.has_role() && owner.as_ref().is_some_and(|owner| *owner != view.caller().id) {
        return Err(ApiError::Forbidden("a key without a role sees its own tasks".to_owned()));
    }
    let mut query = visible(&view, owner, request.agent());
    query.state = request.word("state", &STATES.map(|state| (state_label(state), state)))?;
    query.since = time(request, "since")?;
    query.before = time(request, "before")?;
    let texts: Vec<Option<&str>> = [Some(request.path()), Some(request.caller().id.as_str())]
        .into_iter()
        .chain(["agent", "owner", "state", "via", "since", "before", "q", "status"].map(|name| request.value(name)))
        .collect();
    let tokens = PageTokens::of(request.hub.parts.store.secret(), &texts);
    query.after = match request.value("after") {
        Some(token) => {
            let right = "the token under next of the page before, with the same parameters";
            Some(tokens.read(token).map_err(|_| wrong("after", token, right))?)
        }
        None => None,
    };
    Ok((query, tokens))
}

pub(super) fn time(request: &ApiRequest<'_>, name: &str) -> Result<Option<Timestamp>, ApiError> {
    let Some(given) = request.value(name) else { return Ok(None) };
    Timestamp::parse(given).map(Some).ok_or_else(|| wrong(name, given, "a time such as 2026-01-31T12:00:00Z"))
}

/// A task with what a list shows of it.
#[derive(Serialize)]
struct ShownTask {
    #[serde(flatten)]
    shown: Value,
    task: Task,
}

async fn show(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let row = seen(&request).await?;
    let names = CallerNames::read(request.hub).await?;
    let mut shown = shown(request.hub, &names, &row).await?;
    let task = read_reserved(&mut request, &owner_of(&row), &row.task.id).await?;
    shown["state"] = state_label(task.status.state).into();
    request.answer_reserved(StatusCode::OK, ShownTask { shown, task }).await
}

/// A task. A large one is read once the response budget of the key that asks has room for it, as `GetTask` does.
pub(super) async fn read_reserved(
    request: &mut ApiRequest<'_>,
    caller: &Caller,
    id: &TaskId,
) -> Result<Task, ApiError> {
    let small = SMALL_RESPONSE as u64;
    request.reserve(small).await?;
    let bytes = match request.hub.engine.get_within(&Address::Root, caller, id, small).await? {
        ReadWithin::Task(reading) => return Ok(reading.into_task()?),
        ReadWithin::Larger(bytes) => bytes,
    };
    request.reserve(bytes).await?;
    let reading = request.hub.engine.get(&Address::Root, caller, id).await?;
    // Decoding it would delay the other requests of its thread.
    let decoded = tokio::task::spawn_blocking(move || reading.into_task()).await;
    Ok(decoded.map_err(Error::from)??)
}

/// The row of the task in the path; one that the caller may not see looks like none.
pub(super) async fn seen(request: &ApiRequest<'_>) -> Result<TaskRow, ApiError> {
    let id = TaskId::from(request.variable("id"));
    let view = View::of(request.caller());
    let row = request.hub.parts.store.row(&id).await?;
    let row = row.filter(|row| !row.state.hidden && view.sees_task(&row.task));
    row.ok_or(ApiError::Engine(Error::TaskNotFound(id)))
}

async fn cancel(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    request.no_members().await?;
    let row = seen(&request).await?;
    let reading = request.hub.engine.stop(request.caller(), &row.task.id).await?;
    request.exchange.reserve_at_once(reading.bytes());
    let task = reading.into_task()?;
    let state = |state: TaskState| -> Value { json!({ "state": state_label(state) }) };
    let (agent, before, after) = (row.task.agent.as_str(), state(row.state.state), state(task.status.state));
    let subject = row.task.id.as_str();
    let id = Some(row.task.id.clone());
    let act = Act { name: "tasks.cancel", subject, agent: Some(agent), task: id, before, after };
    request.audit(act).await;
    request.answer_reserved(StatusCode::OK, task).await
}
