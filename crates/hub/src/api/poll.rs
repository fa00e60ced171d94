//! `GET /api/a2a/task/{id}`: what has become of a task, by its id or by the correlation id that it was sent with.

use http::{Response, StatusCode};
use serde_json::{Value, json};
use switchboard_a2a::{Task, TaskId};
use switchboard_engine::store::IdempotencyScope;
use switchboard_engine::{Address, Error};
use switchboard_server::Body;

use super::chat::correlation_key;
use super::error::ApiError;
use super::request::ApiRequest;
use super::route::Route;
use crate::reply::{failure, has_failed, state_text, text};
use crate::task_rows::outcome;

pub(super) const ROUTE: Route =
    Route::get("/api/a2a/task/{id}", "Ask what has become of a task", |request| Box::pin(answer(request))).enveloped();

async fn answer(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let task = find(&request).await?;
    let state = task.status.state;
    let mut answer = json!({ "taskState": state_text(state), "taskId": task.id, "contextId": task.context_id });
    if !state.is_terminal() && !state.is_interrupted() {
        answer["pending"] = true.into();
        return Ok(request.answer(StatusCode::OK, &answer));
    }
    answer["done"] = state.is_terminal().into();
    answer["response"] = text(&task).into();
    if has_failed(state) {
        answer["error"] = failure(&task).into();
        answer["response"] = Value::Null;
    }
    let row = request.hub.parts.store.row(&task.id).await?;
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
    Ok(request.answer(StatusCode::OK, &answer))
}

async fn find(request: &ApiRequest<'_>) -> Result<Task, ApiError> {
    let given = request.variable("id");
    let (engine, caller) = (&request.hub.engine, request.caller());
    match engine.get(&Address::Root, caller, &TaskId::from(given)).await {
        Ok(reading) => return Ok(reading.into_task()?),
        Err(Error::TaskNotFound(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let scope = IdempotencyScope {
        owner: caller.id.clone(),
        address: Address::Root.as_str().to_owned(),
        key: correlation_key(given),
    };
    let sent = request.hub.parts.store.find_send(scope).await?;
    let id = sent.and_then(|sent| sent.task).ok_or_else(|| Error::TaskNotFound(TaskId::from(given)))?;
    Ok(engine.get(&Address::Root, caller, &id).await?.into_task()?)
}
