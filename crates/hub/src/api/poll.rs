//! `GET /api/a2a/task/{id}`: what has become of a task, by its id or by the correlation id that it was sent with.

use http::{Response, StatusCode};
use serde_json::{Value, json};
use switchboard_a2a::TaskId;
use switchboard_engine::store::{IdempotencyScope, TaskRow};
use switchboard_engine::{Address, Error};
use switchboard_server::Body;

use super::chat::correlation_key;
use super::error::ApiError;
use super::request::ApiRequest;
use super::route::Route;
use super::tasks::read_reserved;
use crate::reply::{failure, has_failed, state_text, text};
use crate::task_rows::outcome;

pub(super) const ROUTE: Route =
    Route::get("/api/a2a/task/{id}", "Ask what has become of a task", |request| Box::pin(answer(request))).enveloped();

async fn answer(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let row = find(&request).await?;
    let state = row.state.state;
    let known = |state| json!({ "taskState": state_text(state), "taskId": row.task.id, "contextId": row.task.context });
    // Of a task that goes on its row says all.
    if !state.is_terminal() && !state.is_interrupted() {
        let mut answer = known(state);
        answer["pending"] = true.into();
        return Ok(request.answer(StatusCode::OK, &answer));
    }
    let caller = request.caller().clone();
    let task = read_reserved(&mut request, &caller, &row.task.id).await?;
    // It may have gone on meanwhile.
    let state = task.status.state;
    let mut answer = known(state);
    answer["done"] = state.is_terminal().into();
    answer["response"] = text(&task).into();
    if has_failed(state) {
        answer["error"] = failure(&task).into();
        answer["response"] = Value::Null;
    }
    drop(task);
    let row = request.hub.parts.store.row(&row.task.id).await?;
    let ended = match &row {
        Some(row) => outcome(request.hub, row).await?,
        None => None,
    };
    if let Some((outcome, _)) = ended {
        answer["durationMs"] = outcome.duration_ms.into();
        if let (Some(input), Some(output)) = (outcome.input_tokens, outcome.output_tokens) {
            answer["usage"] = json!({ "input_tokens": input, "output_tokens": output });
        }
        for (member, value) in [("costUsd", outcome.cost_usd), ("confidence", outcome.confidence)] {
            if let Some(value) = value {
                answer[member] = json!(value);
            }
        }
    }
    request.answer_reserved(StatusCode::OK, answer).await
}

/// The row of the task, if the caller may see it.
async fn find(request: &ApiRequest<'_>) -> Result<TaskRow, ApiError> {
    let given = request.variable("id");
    if let Some(row) = visible(request, &TaskId::from(given)).await? {
        return Ok(row);
    }
    let scope = IdempotencyScope {
        owner: request.caller().id.clone(),
        address: Address::Root.as_str().to_owned(),
        key: correlation_key(given),
    };
    let missing = || ApiError::Engine(Error::TaskNotFound(TaskId::from(given)));
    let sent = request.hub.parts.store.find_send(scope).await?;
    let id = sent.and_then(|sent| sent.task).ok_or_else(missing)?;
    visible(request, &id).await?.ok_or_else(missing)
}

async fn visible(request: &ApiRequest<'_>, id: &TaskId) -> Result<Option<TaskRow>, ApiError> {
    match request.hub.engine.size(&Address::Root, request.caller(), id).await {
        Ok(_) => Ok(request.hub.parts.store.row(id).await?),
        Err(Error::TaskNotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
