//! The answers of `/api/webhooks`, one function each.

use std::time::Duration;

use http::{Response, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};
use switchboard_engine::Caller;
use switchboard_webhooks::{WebhookService, WebhookView};

use crate::Body;
use crate::api::error::ApiError;
use crate::api::parameters::Parameters;
use crate::edge::json_response;

type Answer = Result<Response<Body>, ApiError>;

pub(super) async fn list(service: &WebhookService, parameters: &Parameters) -> Answer {
    let (after, size) = (parameters.after()?, parameters.page_size()?);
    let found = service.list(parameters.task()?, parameters.state()?, after, size + 1).await?;
    Ok(page("webhooks", found, size, |last| last.webhook))
}

pub(super) async fn dead_letters(service: &WebhookService, parameters: &Parameters) -> Answer {
    let (after, size) = (parameters.after()?, parameters.page_size()?);
    let found = service.dead_letters(after, size + 1).await?;
    Ok(page("deadLetters", found, size, |last| last.delivery))
}

/// A page of what was found; one item more than its size tells that there is a next page, which begins behind its last.
fn page<T: Serialize>(name: &str, mut found: Vec<T>, size: usize, number: fn(&T) -> i64) -> Response<Body> {
    let has_more = found.len() > size;
    found.truncate(size);
    let next = found.last().filter(|_| has_more).map(number);
    json_response::json(StatusCode::OK, &json!({ name: found, "next": next }))
}

/// One webhook and its newest deliveries.
pub(super) async fn show(service: &WebhookService, webhook: i64) -> Answer {
    let (view, deliveries) = service.show(webhook).await?.ok_or(missing(webhook))?;
    Ok(json_response::json(StatusCode::OK, &json!({ "webhook": view, "deliveries": deliveries })))
}

pub(super) async fn pause(service: &WebhookService, webhook: i64) -> Answer {
    let paused = service.pause(webhook).await?;
    changed(paused, view(service, webhook).await?, None, "an active one", "paused")
}

pub(super) async fn resume(service: &WebhookService, webhook: i64, waits: Option<&str>) -> Answer {
    let resumed = service.resume(webhook).await?;
    changed(resumed, view(service, webhook).await?, waits, "a paused or disabled one", "resumed")
}

fn changed(
    was_changed: bool,
    view: WebhookView,
    waits: Option<&str>,
    wanted: &'static str,
    done: &'static str,
) -> Answer {
    if was_changed {
        return Ok(accepted(json!({ "webhook": view }), waits));
    }
    Err(ApiError::WrongState { webhook: view.webhook, state: view.state, wanted, done })
}

async fn view(service: &WebhookService, webhook: i64) -> Result<WebhookView, ApiError> {
    let found = service.show(webhook).await?;
    found.map(|(view, _)| view).ok_or(missing(webhook))
}

fn missing(webhook: i64) -> ApiError {
    ApiError::Missing { what: "webhook", number: webhook }
}

/// Retries one delivery.
pub(super) async fn retry(service: &WebhookService, delivery: i64, waits: Option<&str>) -> Answer {
    match service.retry(delivery).await? {
        true => Ok(accepted(json!({ "delivery": delivery }), waits)),
        false => Err(ApiError::Missing { what: "delivery to send again under number", number: delivery }),
    }
}

/// Retries every dead letter, or those of one task.
pub(super) async fn retry_dead(service: &WebhookService, parameters: &Parameters, waits: Option<&str>) -> Answer {
    let retried = service.retry_dead(parameters.task_unless_empty()?.as_ref()).await?;
    Ok(accepted(json!({ "retried": retried }), waits.filter(|_| retried > 0)))
}

/// The caller's own signing secrets. Those of others are not shown: any name has one, and this API does not know which
/// names are callers.
pub(super) async fn secret(service: &WebhookService, caller: &Caller) -> Answer {
    Ok(json_response::json(StatusCode::OK, &service.secret(&caller.id).await?))
}

/// Rotates the secrets of all callers.
pub(super) async fn rotate(service: &WebhookService, parameters: &Parameters) -> Answer {
    let overlap = Duration::from_secs(parameters.overlap_seconds()?);
    let previous_until = service.rotate_secrets(overlap).await?;
    Ok(json_response::json(StatusCode::OK, &json!({ "previousUntil": previous_until })))
}

/// A response that says what delays its effect, if something does.
fn accepted(mut answer: Value, waits: Option<&str>) -> Response<Body> {
    if let Some(waits) = waits {
        answer["waits"] = waits.into();
    }
    json_response::json(StatusCode::OK, &answer)
}
