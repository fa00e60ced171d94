//! Creates, changes, removes and runs ceremonies, at the paths of earlier hubs: each by its owner, or by an administrator.

use http::header::IF_MATCH;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use switchboard_server::{Body, idempotency_key};

use super::ceremonies::shown;
use super::error::{ApiError, Problem};
use super::request::{ApiRequest, wrong};
use super::route::{Header, Parameter, Route};
use crate::ceremonies::{Ceremony, CeremonyError};
use crate::task_rows::CallerNames;

const NAME: Parameter = Parameter::new("name", "What people call it.").text();
const DESCRIPTION: Parameter = Parameter::new("description", "What it is for.").text();
const SCHEDULE: Parameter =
    Parameter::new("schedule", "A cron expression of five fields, or six with seconds; it or `at` is needed.").text();
const AT: Parameter = Parameter::new("at", "A single time in place of a schedule.").text();
const TIMEZONE: Parameter = Parameter::new("timezone", "A zone of the IANA database; `UTC` if absent.").text();
const SKILL: Parameter = Parameter::new("skill", "The id of the skill that is run.").text();
const TARGETS: Parameter =
    Parameter::new("targets", "The agents that run it; `all` who have the skill if absent.").names();
const FANOUT: Parameter =
    Parameter::new("fanout", "`all`, `first`, `quorum`, `quorum:N` or `failover`, where several run it.").text();
const CONTENT: Parameter =
    Parameter::new("content", "The text of the message, with {{ id }}, {{ name }} and {{ scheduledAt }}.").text();
const PUBLISH: Parameter =
    Parameter::new("publish", "A topic and a payload that are published; for administrators.").object();
const NOTIFY: Parameter = Parameter::new("notify", "Who is told of the end of a run, one or a list.").one_or_list();
const CHANNEL: Parameter = Parameter::new("notifyChannel", "The channel that is told of the end of a run.").text();
const TIMEOUT: Parameter = Parameter::new("timeout", "How long a run may take, such as `10m`.").text();
const MISSED: Parameter =
    Parameter::new("missed", "What becomes of missed times.").words(&["run_once", "skip", "catch_up"]);
const OVERLAP: Parameter =
    Parameter::new("overlap", "What becomes of a run while another goes on.").words(&["skip", "queue", "parallel"]);
const JITTER: Parameter = Parameter::new("jitter", "By how much a run may be put off, such as `30s`.").text();
const ENABLED: Parameter = Parameter::new("enabled", "Whether it is in force; it is by default.").flag();
const DEFINITION: &[Parameter] = &[
    Parameter::new("id", "Up to 128 letters, digits, -, _ and .; required.").text(),
    NAME,
    DESCRIPTION,
    SCHEDULE,
    AT,
    TIMEZONE,
    SKILL,
    TARGETS,
    FANOUT,
    CONTENT,
    PUBLISH,
    NOTIFY,
    CHANNEL,
    TIMEOUT,
    MISSED,
    OVERLAP,
    JITTER,
    ENABLED,
];
const PATCH: &[Parameter] = &[
    Parameter::new("id", "The id in the path, if it is there.").text(),
    NAME,
    DESCRIPTION,
    SCHEDULE,
    AT,
    TIMEZONE,
    SKILL,
    TARGETS,
    FANOUT,
    CONTENT,
    PUBLISH,
    NOTIFY,
    CHANNEL,
    TIMEOUT,
    MISSED,
    OVERLAP,
    JITTER,
    ENABLED,
    Parameter::new("createdBy", "Its owner, if it is there.").text(),
];

pub(super) const CREATE: Route =
    Route::new(Method::POST, "/api/ceremonies/create", "Create a ceremony", |request| Box::pin(create(request)))
        .body(DEFINITION)
        .refusals(&[(403, "FORBIDDEN"), (409, "EXISTS, IN_FILE")])
        .enveloped();
pub(super) const UPDATE: Route = Route::new(
    Method::POST,
    "/api/ceremonies/{id}/update",
    "Change members of a ceremony; null takes one away",
    |request| Box::pin(update(request)),
)
.body(PATCH)
.headers(&[Header::IfMatch])
.refusals(&[(403, "FORBIDDEN"), (409, "IN_FILE"), (412, "VERSION")])
.enveloped();
pub(super) const DELETE: Route =
    Route::new(Method::POST, "/api/ceremonies/{id}/delete", "Delete a ceremony", |request| Box::pin(delete(request)))
        .body(&[])
        .headers(&[Header::IfMatch])
        .refusals(&[(403, "FORBIDDEN"), (409, "IN_FILE"), (412, "VERSION")])
        .enveloped();
pub(super) const RUN: Route =
    Route::new(Method::POST, "/api/ceremonies/{id}/run", "Run a ceremony now", |request| Box::pin(run(request)))
        .body(&[])
        .headers(&[Header::IdempotencyKey])
        .refusals(&[(403, "FORBIDDEN")])
        .enveloped();

async fn create(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let given = Value::Object(request.object().await?);
    let hub = request.hub;
    let created = hub.ceremonies.create(hub, &request.actor(), &given).await.map_err(refused)?;
    answer(&request, StatusCode::CREATED, &created).await
}

async fn update(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let patch = request.object().await?;
    let (expected, id) = (if_match(&request)?, request.variable("id").to_owned());
    let hub = request.hub;
    let updated = hub.ceremonies.update(hub, &request.actor(), &id, patch, expected).await.map_err(refused)?;
    answer(&request, StatusCode::OK, &updated).await
}

async fn delete(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    request.no_members().await?;
    let expected = if_match(&request)?;
    let id = request.variable("id").to_owned();
    request.hub.ceremonies.remove(&request.actor(), &id, expected).await.map_err(refused)?;
    Ok(request.answer(StatusCode::OK, &json!({ "id": id })))
}

async fn run(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let key = idempotency_key::read(&request.exchange.parts.headers).map_err(ApiError::Protocol)?;
    request.no_members().await?;
    let (hub, id) = (request.hub, request.variable("id").to_owned());
    let run = hub.ceremonies.run_now(hub, &request.actor(), &id, key).await.map_err(refused)?;
    Ok(request.answer(StatusCode::ACCEPTED, &json!({ "taskId": run.task, "runId": run.id })))
}

async fn answer(request: &ApiRequest<'_>, status: StatusCode, ceremony: &Ceremony) -> Result<Response<Body>, ApiError> {
    let names = CallerNames::read(request.hub).await?;
    Ok(request.answer(status, &shown(request.hub, &names, ceremony).await?))
}

fn if_match(request: &ApiRequest<'_>) -> Result<Option<u64>, ApiError> {
    let Some(header) = request.exchange.parts.headers.get(IF_MATCH) else { return Ok(None) };
    let text = header.to_str().unwrap_or_default();
    let number = text.trim().trim_matches('"').parse().ok();
    number.map(Some).ok_or_else(|| wrong("If-Match", text, "the version in quotation marks, such as \"3\""))
}

fn refused(error: CeremonyError) -> ApiError {
    let message = error.to_string();
    let conflict = |status, code, more| ApiError::Conflict { status, code, message: message.clone(), more };
    match error {
        CeremonyError::Invalid(problems) => {
            let shown = problems.into_iter().map(|problem| Problem::new(problem.key, problem.wrong, problem.right));
            ApiError::Invalid(shown.collect())
        }
        CeremonyError::Exists(_) => conflict(StatusCode::CONFLICT, "EXISTS", json!({})),
        CeremonyError::InFile(_) => conflict(StatusCode::CONFLICT, "IN_FILE", json!({})),
        CeremonyError::NotFound(_) => ApiError::NotFound(message),
        CeremonyError::Forbidden(_) => ApiError::Forbidden(message),
        CeremonyError::Version { current, .. } => {
            conflict(StatusCode::PRECONDITION_FAILED, "VERSION", json!({ "version": current }))
        }
        CeremonyError::Store(error) => ApiError::of_store("content", error),
        CeremonyError::Engine(error) => ApiError::Engine(error),
    }
}
