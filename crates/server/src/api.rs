//! The operator API under `/api`: webhooks for operators, and the callback endpoint for other servers' notifications.
//! Plain JSON both ways.

mod callback;
mod error;
mod parameters;
mod webhooks;

use http::{HeaderMap, Method, Response, StatusCode, Uri};
use serde_json::Value;
use switchboard_a2a::TaskId;
use switchboard_engine::CallerRole;
use switchboard_webhooks::CALLBACK_PATH;

use self::error::ApiError;
use self::parameters::Parameters;
use crate::bindings::percent;
use crate::edge::authenticate::check_role;
use crate::edge::json_response;
use crate::{Body, CallerIdentity, State};

pub(crate) use self::callback::{admit, answer as receive};

const WEBHOOKS: &str = "/api/webhooks";

pub(crate) enum Route {
    Webhooks(WebhookRequest),
    Callback(TaskId),
}

/// A request about webhooks.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum WebhookRequest {
    List,
    Show(i64),
    Pause(i64),
    Resume(i64),
    DeadLetters,
    Retry(i64),
    RetryDead,
    Secret,
    Rotate,
}

impl WebhookRequest {
    /// Each caller may read its own secret; new secrets are for all callers at once, so they are an admin's.
    fn role(self) -> CallerRole {
        match self {
            Self::Secret => CallerRole::None,
            Self::Rotate => CallerRole::Admin,
            _ => CallerRole::Operator,
        }
    }

    fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::List => &["task", "taskId", "state", "after", "pageSize"],
            Self::DeadLetters => &["after", "pageSize"],
            Self::RetryDead => &["task", "taskId"],
            Self::Rotate => &["overlapSeconds"],
            Self::Show(_) | Self::Pause(_) | Self::Resume(_) | Self::Retry(_) | Self::Secret => &[],
        }
    }
}

/// Finds the route of a path, and its method.
pub(crate) fn find(path: &str) -> Option<(Method, Route)> {
    if !path.starts_with("/api/") {
        return None;
    }
    let path = path.strip_suffix('/').unwrap_or(path);
    if let Some(id) = path.strip_prefix(CALLBACK_PATH) {
        let id = percent::decode(id).filter(|_| !id.is_empty() && !id.contains('/'));
        id.map(|id| (Method::POST, Route::Callback(TaskId::from(id.into_owned()))))
    } else {
        // These paths hold no id that may contain a slash, so they can be decoded at once.
        let below = path.strip_prefix(WEBHOOKS).and_then(percent::decode);
        below.and_then(|below| webhook_request(&below)).map(|(method, request)| (method, Route::Webhooks(request)))
    }
}

fn webhook_request(below: &str) -> Option<(Method, WebhookRequest)> {
    if below.is_empty() {
        return Some((Method::GET, WebhookRequest::List));
    }
    match below.strip_prefix('/')? {
        "dead-letters" => Some((Method::GET, WebhookRequest::DeadLetters)),
        "dead-letters:retry" => Some((Method::POST, WebhookRequest::RetryDead)),
        "secret" => Some((Method::GET, WebhookRequest::Secret)),
        "secret:rotate" => Some((Method::POST, WebhookRequest::Rotate)),
        word => {
            if let Some(delivery) = word.strip_prefix("deliveries/") {
                let number = number(delivery.strip_suffix(":retry")?)?;
                return Some((Method::POST, WebhookRequest::Retry(number)));
            }
            match word.split_once(':') {
                None => Some((Method::GET, WebhookRequest::Show(number(word)?))),
                Some((webhook, "pause")) => Some((Method::POST, WebhookRequest::Pause(number(webhook)?))),
                Some((webhook, "resume")) => Some((Method::POST, WebhookRequest::Resume(number(webhook)?))),
                Some(_) => None,
            }
        }
    }
}

/// Numbers are written with digits and nothing else.
fn number(word: &str) -> Option<i64> {
    if word.bytes().all(|byte| byte.is_ascii_digit()) { word.parse().ok() } else { None }
}

/// Answers a caller with a key. Operators see and change what is of their agents' tasks.
pub(crate) async fn answer(
    state: &State,
    request: WebhookRequest,
    uri: &Uri,
    identity: &CallerIdentity,
) -> Result<Response<Body>, ApiError> {
    check_role(&identity.caller, request.role()).map_err(ApiError::Role)?;
    let outbox = state.outbox.as_ref().ok_or(ApiError::NoWebhooks)?;
    let service = outbox.service().for_agents(identity.caller.scopes.agents.clone());
    let parameters = Parameters::read(uri.query(), request.parameters())?;
    let waits = (!outbox.is_enabled()).then_some("webhooks.enabled is false");
    match request {
        WebhookRequest::List => webhooks::list(&service, &parameters).await,
        WebhookRequest::Show(webhook) => webhooks::show(&service, webhook).await,
        WebhookRequest::Pause(webhook) => webhooks::pause(&service, webhook).await,
        WebhookRequest::Resume(webhook) => webhooks::resume(&service, webhook, waits).await,
        WebhookRequest::DeadLetters => webhooks::dead_letters(&service, &parameters).await,
        WebhookRequest::Retry(delivery) => webhooks::retry(&service, delivery, waits).await,
        WebhookRequest::RetryDead => webhooks::retry_dead(&service, &parameters, waits).await,
        WebhookRequest::Secret => webhooks::secret(&service, &identity.caller).await,
        WebhookRequest::Rotate => webhooks::rotate(&service, &parameters).await,
    }
}

/// A response that says what delays its effect, if something does.
fn accepted(mut answer: Value, waits: Option<&str>) -> Response<Body> {
    if let Some(waits) = waits {
        answer["waits"] = waits.into();
    }
    json_response::json(StatusCode::OK, &answer)
}

/// The token of a notification: in its own header, or as a bearer token.
fn notification_token(headers: &HeaderMap) -> Option<&str> {
    let own = headers.get("x-a2a-notification-token").and_then(|value| value.to_str().ok()).map(str::trim);
    own.filter(|token| !token.is_empty()).or_else(|| crate::edge::authenticate::bearer(headers))
}
