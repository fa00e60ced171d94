//! `POST /api/plan`: which skills are expected to move a value the wanted way, and on request a task of the best one.

use std::sync::Arc;

use http::{Method, Response, StatusCode};
use serde_json::json;
use switchboard_a2a::{Metadata, Part, TaskId};
use switchboard_engine::TraceContext;
use switchboard_server::{Body, idempotency_key, trace_headers};

use super::error::ApiError;
use super::fields::{Fields, kind};
use super::request::{ApiRequest, offered};
use super::route::{Header, Parameter, Route};
use crate::dispatch::{Dispatch, DispatchHints, dispatch};
use crate::planner::{Candidate, Goal, Want, candidates, to_call};

pub(super) const ROUTE: Route =
    Route::new(Method::POST, "/api/plan", "Find skills by what they change", |request| Box::pin(answer(request)))
        .body(&[
            Parameter::new("domain", "The part of the world, such as `board`; required.").text(),
            Parameter::new("path", "Where in it, such as `data.open`; required.").text(),
            Parameter::new("want", "`up` or `down`: which way the value should go; required.").words(&["up", "down"]),
            Parameter::new("limit", "Candidates in the answer, 1 to 100; 5 if absent.").integer(),
            Parameter::new("dispatch", "`{message: TEXT}`: starts the best one as a task.").object(),
        ])
        .headers(&[Header::IdempotencyKey, Header::Trace])
        .sending();

async fn answer(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let headers = &request.exchange.parts.headers;
    let key = idempotency_key::read(headers).map_err(ApiError::Protocol)?;
    let trace = trace_headers::read(headers).map_err(ApiError::Protocol)?;
    let mut fields = request.fields().await?;
    let domain = fields.text("domain", "the part of the world, such as board");
    let path = fields.text("path", "where in it, such as data.open");
    let want = fields.word("want", &[("up", Want::Up), ("down", Want::Down)]);
    if want.is_none() && !fields.has_problem("want") {
        fields.problem("want", "is missing", "up or down");
    }
    let limit = fields.number("limit", 5, 1..=100);
    let message = message(&mut fields);
    fields.finish()?;
    let goal = Goal { domain, path, want: want.unwrap_or(Want::Up) };
    let found = {
        let hub = request.hub;
        let sums = hub.health.read();
        candidates(&**hub.engine.directory(), request.caller(), &goal, &sums, hub.parts.clock.now())
    };
    let task = match (message, to_call(&found, &*request.hub.registry)) {
        (Some(message), Some(best)) => Some(send(&request, &goal, message, best, (key, trace)).await?),
        (Some(_), None) => {
            let problem =
                format!("no skill that this key may call declares an effect on {} {}", goal.domain, goal.path);
            return Err(ApiError::NotFound(problem));
        }
        (None, _) => None,
    };
    let mut answer = json!({ "candidates": &found[..found.len().min(limit)] });
    if let Some(task) = task {
        answer["taskId"] = json!(task);
    }
    Ok(request.answer(StatusCode::OK, &answer))
}

/// The text of `{"message": TEXT}` under `dispatch`.
fn message(fields: &mut Fields) -> Option<String> {
    const RIGHT: &str = "{\"message\": TEXT}";
    let given = fields.value("dispatch")?;
    let Ok(members) = given.read::<Metadata>() else {
        fields.problem("dispatch", format!("is {}", kind(&given)), RIGHT);
        return None;
    };
    for (name, _) in members.iter().filter(|(name, _)| *name != "message") {
        let shown: String = name.chars().take(80).collect();
        fields.problem(&format!("dispatch.{shown}"), "is no member here", &offered(name, &["message"]));
    }
    let Some(message) = members.get("message") else {
        fields.problem("dispatch.message", "is missing", "a text");
        return None;
    };
    match message.as_text() {
        Some(text) if !text.is_empty() => return Some(text),
        Some(_) => fields.problem("dispatch.message", "is missing", "a text"),
        None => fields.problem("dispatch.message", format!("is {}", kind(message)), "a text"),
    }
    None
}

/// Sends the message to the candidate as the caller's own, and returns the task's id. A request that is repeated under its
/// key gets the task that it began, though another candidate may be the best by now.
async fn send(
    request: &ApiRequest<'_>,
    goal: &Goal,
    text: String,
    best: &Candidate,
    headers: (Option<String>, Option<Arc<TraceContext>>),
) -> Result<TaskId, ApiError> {
    let (key, trace) = headers;
    let hints = DispatchHints {
        skill: Some(best.skill.clone()),
        targets: vec![best.agent.clone()],
        ..DispatchHints::default()
    };
    let same = format!("plan {}\n{}\n{:?}", goal.domain, goal.path, goal.want);
    let ordered =
        Dispatch { parts: vec![Part::text(text)], hints, key, request: Some(same), trace, ..Dispatch::default() };
    Ok(dispatch(request.hub, request.caller(), ordered).await?.task)
}
