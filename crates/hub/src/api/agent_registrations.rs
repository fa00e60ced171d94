//! Registers, changes and removes remote agents: `/api/agents`, and `/api/a2a-endpoints` in the form of earlier hubs.

use http::header::IF_MATCH;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use switchboard_engine::CallerRole;
use switchboard_server::Body;

use super::error::{ApiError, Problem};
use super::request::{ApiRequest, wrong};
use super::route::{Header, Parameter, Route};
use crate::registry::RegistrationError;

const NAME: Parameter = Parameter::new("name", "Its name; required.").text();
const URL: Parameter = Parameter::new("url", "Its address; required.").text();
const MORE: Parameter = Parameter::new("…", "Every other key that an agent with url may have in agents.yaml.");
const ITEM: &[Parameter] = &[NAME, URL, MORE];
const REPLACEMENT: &[Parameter] =
    &[NAME, URL, Parameter::new("version", "The version that is replaced, as If-Match says too.").integer(), MORE];
const FORCE: &[Parameter] =
    &[Parameter::new("force", "true: although it cannot be reached, or has live tasks.").words(&["true", "false"])];

pub(super) const ADD: Route = add("/api/agents");
pub(super) const ADD_ENDPOINT: Route = add("/api/a2a-endpoints").enveloped();
pub(super) const UPDATE: Route = update("/api/agents/{name}");
pub(super) const UPDATE_ENDPOINT: Route = update("/api/a2a-endpoints/{name}").enveloped();
pub(super) const REMOVE: Route = remove("/api/agents/{name}");
pub(super) const REMOVE_ENDPOINT: Route = remove("/api/a2a-endpoints/{name}").enveloped();

const fn add(path: &'static str) -> Route {
    let route = Route::new(Method::POST, path, "Register an agent elsewhere", |request| Box::pin(register(request)));
    route
        .role(CallerRole::Admin)
        .body(ITEM)
        .parameters(FORCE)
        .refusals(&[(409, "EXISTS, IN_FILE"), (502, "UNREACHABLE")])
}

const fn update(path: &'static str) -> Route {
    let route = Route::new(Method::PUT, path, "Replace a registration", |request| Box::pin(replace(request)));
    route
        .role(CallerRole::Admin)
        .body(REPLACEMENT)
        .headers(&[Header::IfMatch])
        .refusals(&[(409, "IN_FILE"), (412, "VERSION")])
}

const fn remove(path: &'static str) -> Route {
    let route = Route::new(Method::DELETE, path, "Remove a registration", |request| Box::pin(delete(request)));
    route.role(CallerRole::Admin).body(&[]).parameters(FORCE).refusals(&[(409, "BUSY, IN_FILE"), (412, "VERSION")])
}

async fn register(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let force = force(&request)?;
    let item = Value::Object(request.object().await?);
    let registered = request.hub.registry.register(&request.actor(), &item, force).await;
    let (name, version) = registered.map_err(refused)?;
    Ok(request.answer(StatusCode::CREATED, &json!({ "name": name, "version": version })))
}

async fn replace(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let mut item = request.object().await?;
    let in_body = item.remove("version");
    let expected = match (in_body, if_match(&request)?) {
        (None, expected) => expected,
        (Some(version), header) => {
            let number = version.as_u64().filter(|number| header.is_none_or(|header| header == *number));
            Some(number.ok_or_else(|| wrong("version", &version.to_string(), "a number, the same as If-Match"))?)
        }
    };
    let name = request.variable("name").to_owned();
    let updated = request.hub.registry.update(&request.actor(), &name, &Value::Object(item), expected).await;
    let version = updated.map_err(refused)?;
    let mut answer = json!({ "name": name, "version": version });
    // It is stored, and counts from when no file has an agent of this name.
    if request.hub.registry.roster().entry(&name).is_some_and(|entry| entry.shadows_registration) {
        answer["shadowed"] = true.into();
    }
    Ok(request.answer(StatusCode::OK, &answer))
}

async fn delete(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let force = force(&request)?;
    request.no_members().await?;
    let name = request.variable("name").to_owned();
    request.hub.registry.remove(&request.actor(), &name, force).await.map_err(refused)?;
    Ok(request.empty())
}

fn force(request: &ApiRequest<'_>) -> Result<bool, ApiError> {
    Ok(request.word("force", &[("true", true), ("false", false)])?.unwrap_or(false))
}

fn if_match(request: &ApiRequest<'_>) -> Result<Option<u64>, ApiError> {
    let Some(header) = request.exchange.parts.headers.get(IF_MATCH) else { return Ok(None) };
    let text = header.to_str().unwrap_or_default();
    let number = text.trim().trim_matches('"').parse().ok();
    number.map(Some).ok_or_else(|| wrong("If-Match", text, "the version in quotation marks, such as \"3\""))
}

/// A refusal of the registry as one of the API.
pub(super) fn refused(error: RegistrationError) -> ApiError {
    let message = error.to_string();
    match error {
        RegistrationError::Invalid(problems) => {
            let shown = |problem: switchboard_host::config::Problem| match problem.key.as_str() {
                // A file says it of the whole item.
                "" if problem.wrong == "has no name" => Problem::new("name", "is missing", problem.right),
                _ => Problem::new(problem.key, problem.wrong, problem.right),
            };
            let mut problems: Vec<Problem> = problems.into_iter().map(shown).collect();
            // What is not known first: it may be a misspelled one of those that are missing.
            problems.sort_by_key(|problem| problem.wrong != "unknown key");
            ApiError::Invalid(problems)
        }
        RegistrationError::NotFound(_) => ApiError::NotFound(message),
        RegistrationError::Exists(_) => conflict("EXISTS", message, json!({})),
        RegistrationError::InFile(_) => conflict("IN_FILE", message, json!({})),
        RegistrationError::Busy { live, .. } => conflict("BUSY", message, json!({ "live": live })),
        RegistrationError::Version { current, .. } => {
            let more = json!({ "version": current });
            ApiError::Conflict { status: StatusCode::PRECONDITION_FAILED, code: "VERSION", message, more }
        }
        RegistrationError::Unreachable(_) => {
            ApiError::Conflict { status: StatusCode::BAD_GATEWAY, code: "UNREACHABLE", message, more: json!({}) }
        }
        RegistrationError::Store(error) => ApiError::Store(error),
    }
}

fn conflict(code: &'static str, message: String, more: Value) -> ApiError {
    ApiError::Conflict { status: StatusCode::CONFLICT, code, message, more }
}
