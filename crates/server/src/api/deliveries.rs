//! Deliveries that were given up, and sending them once more.

use http::{Response, StatusCode};
use serde_json::json;
use switchboard_webhooks::WebhookDesk;

use super::error::ApiError;
use super::parameters::Parameters;
use super::promise;
use crate::Body;
use crate::edge::json_response;

/// A page of dead letters.
pub(super) async fn dead_letters(desk: &WebhookDesk, parameters: &Parameters) -> Result<Response<Body>, ApiError> {
    let (after, size) = (parameters.after()?, parameters.page_size()?);
    let mut found = desk.dead_letters(after, size + 1).await?;
    let next = (found.len() > size).then(|| {
        found.truncate(size);
        found.last().map_or(after, |last| last.delivery)
    });
    Ok(json_response::json(StatusCode::OK, &json!({ "deadLetters": found, "next": next })))
}

/// Sends one delivery once more.
pub(super) async fn retry(desk: &WebhookDesk, delivery: i64, waits: Option<&str>) -> Result<Response<Body>, ApiError> {
    match desk.retry(delivery).await? {
        true => Ok(promise(json!({ "delivery": delivery }), waits)),
        false => Err(ApiError::Missing { what: "delivery to send again under number", number: delivery }),
    }
}

/// Sends every dead letter once more, or those of one task.
pub(super) async fn retry_dead(
    desk: &WebhookDesk,
    parameters: &Parameters,
    waits: Option<&str>,
) -> Result<Response<Body>, ApiError> {
    let retried = desk.retry_dead(parameters.task_unless_empty()?.as_ref()).await?;
    Ok(promise(json!({ "retried": retried }), waits.filter(|_| retried > 0)))
}
