//! The callback receiver: push notifications of other servers about work that a task of ours has delegated. The sender
//! shows the task's own token, so no key is needed here.

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, Response, StatusCode};
use serde_json::json;
use switchboard_a2a::TaskId;
use switchboard_webhooks::{AdmittedSender, ReceiveError};

use super::{error, notification_token};
use crate::edge::authenticate::AuthError;
use crate::edge::json_response;
use crate::{Body, State};

/// When a sender should retry while the receiver is full.
const FULL_RETRY_SECONDS: u64 = 30;

/// Checks the sender's token before its body is read.
pub(crate) async fn admit(state: &State, task: &TaskId, headers: &HeaderMap) -> Result<AdmittedSender, Response<Body>> {
    let Some(callbacks) = &state.callbacks else {
        return Err(json_response::error(StatusCode::NOT_FOUND, "this server takes no callbacks"));
    };
    let token = notification_token(headers);
    callbacks.admit(task, token).await.map_err(|problem| refusal(&problem, token.is_some()))
}

/// Receives a notification. A repeated one is acknowledged like a new one.
pub(crate) async fn answer(state: &State, by: AdmittedSender, headers: &HeaderMap, body: &[u8]) -> Response<Body> {
    let Some(callbacks) = &state.callbacks else {
        return json_response::error(StatusCode::NOT_FOUND, "this server takes no callbacks");
    };
    let id = headers.get("webhook-id").and_then(|value| value.to_str().ok());
    match callbacks.receive(by, id, body).await {
        Ok(_) => json_response::json(StatusCode::OK, &json!({ "success": true })),
        Err(problem) => refusal(&problem, true),
    }
}

fn refusal(problem: &ReceiveError, has_token: bool) -> Response<Body> {
    let message = problem.to_string();
    match problem {
        ReceiveError::Unknown(_) => json_response::error(StatusCode::NOT_FOUND, &message),
        ReceiveError::Body(_) => json_response::error(StatusCode::BAD_REQUEST, &message),
        ReceiveError::Full => error::later(&message, FULL_RETRY_SECONDS),
        ReceiveError::Store(error) => error::unavailable(error),
        ReceiveError::Token => {
            let error = if has_token { AuthError::Unknown } else { AuthError::Missing };
            let mut response = json_response::error(StatusCode::UNAUTHORIZED, &message);
            response.headers_mut().insert(WWW_AUTHENTICATE, error.challenge());
            response
        }
    }
}
