//! The secrets that deliveries are signed with: everybody may read their own, operators may read any and change all.

use std::time::Duration;

use http::{Response, StatusCode};
use serde_json::json;
use switchboard_engine::Caller;
use switchboard_webhooks::WebhookDesk;

use super::parameters::Parameters;
use super::problem::Problem;
use crate::Body;
use crate::edge::plain;

/// The secrets of whoever asks, or of the caller an operator names.
pub(super) async fn show(
    desk: &WebhookDesk,
    parameters: &Parameters,
    asked_by: &Caller,
) -> Result<Response<Body>, Problem> {
    let named = parameters.caller();
    let caller = named.as_ref().unwrap_or(&asked_by.id);
    if *caller != asked_by.id && !asked_by.scopes.admin {
        return Err(Problem::NotAdmin("the secrets of other callers are"));
    }
    Ok(plain::json(StatusCode::OK, &desk.secret(caller).await?))
}

/// Gives every caller a new secret.
pub(super) async fn rotate(desk: &WebhookDesk, parameters: &Parameters) -> Result<Response<Body>, Problem> {
    let overlap = Duration::from_secs(parameters.overlap_seconds()?);
    let previous_until = desk.rotate_secrets(overlap).await?;
    Ok(plain::json(StatusCode::OK, &json!({ "previousUntil": previous_until })))
}
