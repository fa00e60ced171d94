//! The callback receiver: push notifications of other servers about work that a task of ours has delegated. The sender
//! shows the task's own token, so no key is needed here.

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, Response, StatusCode};
use serde_json::json;
use switchboard_a2a::TaskId;
use switchboard_webhooks::{AdmittedSender, CallbackReceiver, ReceiveError};

use super::{error, notification_token};
use crate::edge::authenticate::AuthError;
use crate::edge::json_response;
use crate::{Body, State};

/// When a sender should retry while the receiver is full.
const FULL_RETRY_SECONDS: u64 = 30;

/// A sender whose token is good, and the receiver of its notification.
pub(crate) type Admitted<'a> = (&'a CallbackReceiver, AdmittedSender);

/// Checks the sender's token before its body is read.
pub(crate) async fn admit<'a>(
    state: &'a State,
    task: &TaskId,
    headers: &HeaderMap,
) -> Result<Admitted<'a>, Response<Body>> {
    let Some(callbacks) = &state.callbacks else {
        return Err(json_response::error(StatusCode::NOT_FOUND, "this server takes no callbacks"));
    };
    let token = notification_token(headers);
    let admitted = callbacks.admit(task, token).await;
    admitted.map(|sender| (callbacks, sender)).map_err(|problem| refusal(&problem, token.is_some()))
}

/// Receives a notification. A repeated one is acknowledged like a new one.
pub(crate) async fn answer((callbacks, sender): Admitted<'_>, headers: &HeaderMap, body: &[u8]) -> Response<Body> {
    let id = headers.get("webhook-id").and_then(|value| value.to_str().ok());
    match callbacks.receive(sender, id, body).await {
        Ok(_) => json_response::json(StatusCode::OK, &json!({ "success": true })),
        Err(problem) => refusal(&problem, true),
    }
}

fn refusal(problem: &ReceiveError, has_token: bool) -> Response<Body> {
    let message = problem.to_string();
    match problem {
        ReceiveError::Unknown(_) => json_response::error(StatusCode::NOT_FOUND, &message),
        ReceiveError::Body(_) => json_response::error(StatusCode::BAD_REQUEST, &message),
        ReceiveError::Full => json_response::later(&message, FULL_RETRY_SECONDS),
        ReceiveError::Store(error) => error::unavailable(error),
        ReceiveError::Token => {
            let error = if has_token { AuthError::Unknown } else { AuthError::Missing };
            let mut response = json_response::error(StatusCode::UNAUTHORIZED, &message);
            response.headers_mut().insert(WWW_AUTHENTICATE, error.challenge());
            response
        }
    }
}
