//! `/api/webhooks`: webhooks, dead letters and signing secrets, for operators of the agents they belong to.

mod answers;

use futures_util::future::BoxFuture;
use http::{Method, Response, Uri};
use switchboard_engine::{Caller, CallerRole};
use switchboard_webhooks::Webhooks;

use super::error::ApiError;
use super::parameters::Parameters;
use crate::Body;
use crate::bindings::percent;
use crate::edge::json_response;
use crate::front::{Access, Exchange, Front, WrongMethod};

const WEBHOOKS: &str = "/api/webhooks";

pub(crate) struct WebhookFront {
    /// Absent on a server without webhooks.
    pub(crate) webhooks: Option<Webhooks>,
}

impl Front for WebhookFront {
    fn name(&self) -> &'static str {
        "webhooks"
    }

    fn find(&self, path: &str, method: &Method) -> Option<Result<Access, WrongMethod>> {
        let (offered, request) = request_at(path)?;
        Some(match offered {
            offered if offered == *method => Ok(Access::role(request.role())),
            Method::GET => Err(WrongMethod("GET, HEAD")),
            _ => Err(WrongMethod("POST")),
        })
    }

    fn answer<'a>(&'a self, exchange: &'a mut Exchange) -> BoxFuture<'a, Response<Body>> {
        Box::pin(async move {
            let uri = &exchange.parts.uri;
            let Some((_, request)) = request_at(uri.path()) else { return json_response::not_found(uri.path()) };
            let answer = self.perform(request, uri, exchange.caller()).await;
            answer.unwrap_or_else(|problem| problem.response())
        })
    }
}

/// A request about webhooks.
#[derive(Clone, Copy)]
enum WebhookRequest {
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

impl WebhookFront {
    async fn perform(&self, request: WebhookRequest, uri: &Uri, caller: &Caller) -> Result<Response<Body>, ApiError> {
        let webhooks = self.webhooks.as_ref().ok_or(ApiError::NoWebhooks)?;
        let service = webhooks.service().for_agents(caller.scopes.agents.clone());
        let parameters = Parameters::read(uri.query(), request.parameters())?;
        let waits = (!webhooks.is_enabled()).then_some("webhooks.enabled is false");
        match request {
            WebhookRequest::List => answers::list(&service, &parameters).await,
            WebhookRequest::Show(webhook) => answers::show(&service, webhook).await,
            WebhookRequest::Pause(webhook) => answers::pause(&service, webhook).await,
            WebhookRequest::Resume(webhook) => answers::resume(&service, webhook, waits).await,
            WebhookRequest::DeadLetters => answers::dead_letters(&service, &parameters).await,
            WebhookRequest::Retry(delivery) => answers::retry(&service, delivery, waits).await,
            WebhookRequest::RetryDead => answers::retry_dead(&service, &parameters, waits).await,
            WebhookRequest::Secret => answers::secret(&service, caller).await,
            WebhookRequest::Rotate => answers::rotate(&service, &parameters).await,
        }
    }
}

/// The request at a path, and its method. These paths hold no id that may contain a slash, so they can be decoded at once.
fn request_at(path: &str) -> Option<(Method, WebhookRequest)> {
    let path = path.strip_suffix('/').unwrap_or(path);
    webhook_request(&percent::decode(path.strip_prefix(WEBHOOKS)?)?)
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
