//! The callback receiver: push notifications of other servers about work that a task of ours has delegated. The sender
//! shows the task's own token, so no key is needed here.

use futures_util::future::BoxFuture;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, Method, Response, StatusCode};
use serde_json::json;
use switchboard_a2a::TaskId;
use switchboard_webhooks::{CALLBACK_PATH, CallbackReceiver, ReceiveError};

use super::error;
use crate::Body;
use crate::bindings::percent;
use crate::edge::authenticate::{AuthError, bearer};
use crate::edge::json_response;
use crate::front::{Access, Exchange, Front, WrongMethod};

pub(crate) struct CallbackFront {
    /// Absent on a server that takes no callbacks.
    pub(crate) receiver: Option<CallbackReceiver>,
}

impl Front for CallbackFront {
    fn name(&self) -> &'static str {
        "callbacks"
    }

    fn find(&self, path: &str, method: &Method) -> Option<Result<Access, WrongMethod>> {
        task_at(path)?;
        Some(if *method == Method::POST { Ok(Access::PUBLIC.with_json()) } else { Err(WrongMethod("POST")) })
    }

    /// Checks the sender's token before the body is read.
    fn answer<'a>(&'a self, exchange: &'a mut Exchange) -> BoxFuture<'a, Response<Body>> {
        Box::pin(async move {
            let path = exchange.parts.uri.path();
            let Some(task) = task_at(path) else { return json_response::not_found(path) };
            let Some(receiver) = &self.receiver else {
                return json_response::error(StatusCode::NOT_FOUND, "this server takes no callbacks");
            };
            let token = notification_token(&exchange.parts.headers);
            let sender = match receiver.admit(&task, token).await {
                Ok(sender) => sender,
                Err(problem) => return refusal(&problem, token.is_some()),
            };
            let body = match exchange.read_body().await {
                Ok(body) => body,
                Err(refused) => return refused,
            };
            let id = exchange.parts.headers.get("webhook-id").and_then(|value| value.to_str().ok());
            // A repeated notification is acknowledged like a new one.
            match receiver.receive(sender, id, &body).await {
                Ok(_) => json_response::json(StatusCode::OK, &json!({ "success": true })),
                Err(problem) => refusal(&problem, true),
            }
        })
    }
}

fn task_at(path: &str) -> Option<TaskId> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let id = path.strip_prefix(CALLBACK_PATH).filter(|id| !id.is_empty() && !id.contains('/'))?;
    percent::decode(id).map(|id| TaskId::from(id.into_owned()))
}

/// The headers that servers send the token in: that of the specification, and that of the official Rust server.
const TOKEN_HEADERS: [&str; 2] = ["x-a2a-notification-token", "a2a-notification-token"];

/// The token of a notification: in a header of its own, or as a bearer token.
fn notification_token(headers: &HeaderMap) -> Option<&str> {
    let own = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    TOKEN_HEADERS.into_iter().filter_map(own).find(|token| !token.is_empty()).or_else(|| bearer(headers))
}

fn refusal(problem: &ReceiveError, has_token: bool) -> Response<Body> {
    let message = problem.to_string();
    match problem {
        ReceiveError::Unknown(_) => json_response::error(StatusCode::NOT_FOUND, &message),
        ReceiveError::Body(_) => json_response::error(StatusCode::BAD_REQUEST, &message),
        ReceiveError::Store(error) => error::unavailable(error),
        ReceiveError::Token => {
            let error = if has_token { AuthError::Unknown } else { AuthError::Missing };
            let mut response = json_response::error(StatusCode::UNAUTHORIZED, &message);
            response.headers_mut().insert(WWW_AUTHENTICATE, error.challenge());
            response
        }
    }
}
