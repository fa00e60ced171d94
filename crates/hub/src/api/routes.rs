//! `/api/routes`: what is done for events. Which agent gets a message is routing, and no endpoint's business.

use http::header::IF_MATCH;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use switchboard_engine::CallerRole;
use switchboard_server::Body;

use super::error::{ApiError, Problem};
use super::request::{ApiRequest, wrong};
use super::route::{Header, Parameter, Route};
use crate::routes::{Definition, Route as EventRoute, RouteError, Source};
use crate::task_rows::CallerNames;

const NAME: Parameter = Parameter::new("name", "Its name: up to 64 letters, digits, - and _; required.").text();
const WHEN: Parameter =
    Parameter::new("when", "The topic, and optionally the agent and the state of its task; required.").object();
const THEN: Parameter = Parameter::new("then", "A skill, targets or both; or a url and secretEnv; required.").object();
const CONTENT: Parameter =
    Parameter::new("content", "The text of the message, or the JSON of the POST, with {{ }} in texts.")
        .text_or_object();
const ENABLED: Parameter = Parameter::new("enabled", "Whether it is in force; it is by default.").flag();

pub(super) const LIST: Route =
    Route::get("/api/routes", "List routes, what they owe and how they do", |request| Box::pin(list(request)))
        .role(CallerRole::Viewer)
        .parameters(&[
            Parameter::new("name", "Only the route of this name."),
            Parameter::new("pageSize", "Routes on a page, 1 to 100; 50 by default.").integer(),
            Parameter::new("after", "The name under next of the page before."),
        ])
        .enveloped();
pub(super) const ADD: Route =
    Route::new(Method::POST, "/api/routes", "Register a route", |request| Box::pin(add(request)))
        .role(CallerRole::Admin)
        .body(&[NAME, WHEN, THEN, CONTENT, ENABLED])
        .refusals(&[(409, "EXISTS, IN_FILE")])
        .enveloped();
pub(super) const UPDATE: Route =
    Route::new(Method::PUT, "/api/routes/{name}", "Replace a registered route", |request| Box::pin(update(request)))
        .role(CallerRole::Admin)
        .body(&[Parameter::new("name", "The name in the path, if it is there.").text(), WHEN, THEN, CONTENT, ENABLED])
        .headers(&[Header::IfMatch])
        .refusals(&[(409, "IN_FILE"), (412, "VERSION")])
        .enveloped();
pub(super) const REMOVE: Route =
    Route::new(Method::DELETE, "/api/routes/{name}", "Remove a registered route and what it owes", |request| {
        Box::pin(remove(request))
    })
    .role(CallerRole::Admin)
    .body(&[])
    .headers(&[Header::IfMatch])
    .refusals(&[(409, "IN_FILE"), (412, "VERSION")])
    .enveloped();

async fn list(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let page_size = request.number("pageSize", 50, 1..=100)?;
    let (name, after) = (request.value("name"), request.value("after").unwrap_or_default());
    let names = CallerNames::read(request.hub).await?;
    let is_admin = request.caller().scopes.role >= CallerRole::Admin;
    let table = request.hub.routes.table();
    let is_wanted = |route: &&std::sync::Arc<EventRoute>| {
        let own = route.definition.name.as_str();
        own > after && name.is_none_or(|name| name == own)
    };
    let mut wanted = table.routes.iter().filter(is_wanted).peekable();
    let items: Vec<Value> = wanted.by_ref().take(page_size).map(|route| shown(route, is_admin, &names)).collect();
    let last = items.last().map(|item| item["name"].clone());
    let mut answer = json!({ "items": items });
    if let Some(last) = last.filter(|_| wanted.peek().is_some()) {
        answer["next"] = last;
    }
    Ok(request.answer(StatusCode::OK, &answer))
}

async fn add(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let given = Value::Object(request.object().await?);
    let added = request.hub.routes.add(&request.actor(), &given).await;
    let (definition, version) = added.map_err(refused)?;
    Ok(request.answer(StatusCode::CREATED, &stored(&definition, version)))
}

async fn update(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let given = Value::Object(request.object().await?);
    let (expected, name) = (if_match(&request)?, request.variable("name").to_owned());
    let updated = request.hub.routes.update(&request.actor(), &name, &given, expected).await;
    let (definition, version) = updated.map_err(refused)?;
    Ok(request.answer(StatusCode::OK, &stored(&definition, version)))
}

async fn remove(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    request.no_members().await?;
    let expected = if_match(&request)?;
    let removed = request.hub.routes.remove(&request.actor(), request.variable("name"), expected).await;
    removed.map_err(refused)?;
    Ok(request.empty())
}

fn if_match(request: &ApiRequest<'_>) -> Result<Option<u64>, ApiError> {
    let Some(header) = request.exchange.parts.headers.get(IF_MATCH) else { return Ok(None) };
    let text = header.to_str().unwrap_or_default();
    let number = text.trim().trim_matches('"').parse().ok();
    number.map(Some).ok_or_else(|| wrong("If-Match", text, "the version in quotation marks, such as \"3\""))
}

fn stored(definition: &Definition, version: u64) -> Value {
    let mut stored = definition.written();
    stored["version"] = version.into();
    stored
}

/// A route with what it owes. The path of its address may be a secret, which only administrators see.
fn shown(route: &EventRoute, is_admin: bool, names: &CallerNames) -> Value {
    let (definition, state) = (&route.definition, &route.state);
    let mut shown = if is_admin { definition.written() } else { definition.shown() };
    match &route.source {
        Source::File { shadows_registration } => {
            shown["source"] = "file".into();
            if *shadows_registration {
                shown["shadowsRegistration"] = true.into();
            }
        }
        Source::Registration { version, owner } => {
            shown["source"] = "registration".into();
            shown["version"] = (*version).into();
            names.put(&mut shown, "owner", owner);
        }
    }
    let delivery = state.delivery();
    shown["owed"] = state.owed().into();
    shown["paused"] = state.is_paused().into();
    shown["failing"] = state.is_failing().into();
    if state.left_out() > 0 {
        shown["leftOut"] = state.left_out().into();
    }
    if let Some((at, problem)) = delivery.last_error {
        shown["lastError"] = json!({ "at": at, "problem": problem });
    }
    if let Some(at) = delivery.delivered_at {
        shown["deliveredAt"] = json!(at);
    }
    shown
}

fn refused(error: RouteError) -> ApiError {
    let message = error.to_string();
    let conflict = |status, code, more| ApiError::Conflict { status, code, message: message.clone(), more };
    match error {
        RouteError::Invalid(problems) => {
            let shown = problems.into_iter().map(|problem| Problem::new(problem.key, problem.wrong, problem.right));
            ApiError::Invalid(shown.collect())
        }
        RouteError::Exists(_) => conflict(StatusCode::CONFLICT, "EXISTS", json!({})),
        RouteError::InFile(_) => conflict(StatusCode::CONFLICT, "IN_FILE", json!({})),
        RouteError::NotFound(_) => ApiError::NotFound(message),
        RouteError::Version { current, .. } => {
            conflict(StatusCode::PRECONDITION_FAILED, "VERSION", json!({ "version": current }))
        }
        RouteError::Store(error) => ApiError::of_store("content", error),
    }
}
