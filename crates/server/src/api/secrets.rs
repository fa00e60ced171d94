//! The secrets that deliveries are signed with: everybody may read their own, operators may change all. Those of others
//! are not told here: any name has a secret, and which names are callers' only the keeper of the keys knows.

use std::time::Duration;

use http::{Response, StatusCode};
use serde_json::json;
use switchboard_engine::Caller;
use switchboard_webhooks::WebhookDesk;

use super::error::ApiError;
use super::parameters::Parameters;
use crate::Body;
use crate::edge::json_response;

/// The secrets of whoever asks.
pub(super) async fn show(desk: &WebhookDesk, caller: &Caller) -> Result<Response<Body>, ApiError> {
    Ok(json_response::json(StatusCode::OK, &desk.secret(&caller.id).await?))
}

/// Gives every caller a new secret.
pub(super) async fn rotate(desk: &WebhookDesk, parameters: &Parameters) -> Result<Response<Body>, ApiError> {
    let overlap = Duration::from_secs(parameters.overlap_seconds()?);
    let previous_until = desk.rotate_secrets(overlap).await?;
    Ok(json_response::json(StatusCode::OK, &json!({ "previousUntil": previous_until })))
}
