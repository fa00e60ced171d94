//! The secrets that deliveries are signed with: everybody may read their own, operators may change all. Those of others
//! are not told here: any name has a secret, and which names are callers' only the keeper of the keys knows.

use std::time::Duration;

use http::{Response, StatusCode};
use serde_json::json;
use switchboard_engine::Caller;
use switchboard_webhooks::WebhookDesk;

use super::parameters::Parameters;
use super::problem::Problem;
use crate::Body;
use crate::edge::plain;

/// The secrets of whoever asks.
pub(super) async fn show(desk: &WebhookDesk, asked_by: &Caller) -> Result<Response<Body>, Problem> {
    Ok(plain::json(StatusCode::OK, &desk.secret(&asked_by.id).await?))
}

/// Gives every caller a new secret.
pub(super) async fn rotate(desk: &WebhookDesk, parameters: &Parameters) -> Result<Response<Body>, Problem> {
    let overlap = Duration::from_secs(parameters.overlap_seconds()?);
    let previous_until = desk.rotate_secrets(overlap).await?;
    Ok(plain::json(StatusCode::OK, &json!({ "previousUntil": previous_until })))
}
