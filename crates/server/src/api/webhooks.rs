//! Webhooks as operators see them, and holding one back.

use http::{Response, StatusCode};
use serde_json::json;
use switchboard_webhooks::{WebhookDesk, WebhookView};

use super::error::ApiError;
use super::parameters::Parameters;
use super::promise;
use crate::Body;
use crate::edge::json_response;

/// A page of webhooks.
pub(super) async fn list(desk: &WebhookDesk, parameters: &Parameters) -> Result<Response<Body>, ApiError> {
    let (after, size) = (parameters.after()?, parameters.page_size()?);
    let mut found = desk.list(parameters.task()?, parameters.state()?, after, size + 1).await?;
    let next = (found.len() > size).then(|| {
        found.truncate(size);
        found.last().map_or(after, |last| last.webhook)
    });
    Ok(json_response::json(StatusCode::OK, &json!({ "webhooks": found, "next": next })))
}

/// One webhook and its newest deliveries.
pub(super) async fn show(desk: &WebhookDesk, webhook: i64) -> Result<Response<Body>, ApiError> {
    let (view, deliveries) = desk.show(webhook).await?.ok_or(missing(webhook))?;
    Ok(json_response::json(StatusCode::OK, &json!({ "webhook": view, "deliveries": deliveries })))
}

/// Holds a webhook back.
pub(super) async fn pause(desk: &WebhookDesk, webhook: i64) -> Result<Response<Body>, ApiError> {
    let paused = desk.pause(webhook).await?;
    changed(paused, view(desk, webhook).await?, None, "an active one", "paused")
}

/// Lets a webhook go on.
pub(super) async fn resume(desk: &WebhookDesk, webhook: i64, waits: Option<&str>) -> Result<Response<Body>, ApiError> {
    let resumed = desk.resume(webhook).await?;
    changed(resumed, view(desk, webhook).await?, waits, "a paused or disabled one", "resumed")
}

fn changed(
    was_changed: bool,
    view: WebhookView,
    waits: Option<&str>,
    wanted: &'static str,
    done: &'static str,
) -> Result<Response<Body>, ApiError> {
    if was_changed {
        return Ok(promise(json!({ "webhook": view }), waits));
    }
    Err(ApiError::WrongState { webhook: view.webhook, state: view.state, wanted, done })
}

async fn view(desk: &WebhookDesk, webhook: i64) -> Result<WebhookView, ApiError> {
    let found = desk.show(webhook).await?;
    found.map(|(view, _)| view).ok_or(missing(webhook))
}

fn missing(webhook: i64) -> ApiError {
    ApiError::Missing { what: "webhook", number: webhook }
}
