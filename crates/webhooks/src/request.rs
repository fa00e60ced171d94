//! The request of one attempt: the body as it was made, the configuration as it is now.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Request};
use switchboard_a2a::{Timestamp, Version};
use switchboard_egress::Target;
use switchboard_engine::Cursor;
use switchboard_engine::store::webhooks::WebhookRow;

use crate::config::Config;
use crate::signature::{Secret, sign};

/// The scheme of credentials whose scheme nobody named.
const BEARER: &str = "Bearer";

/// What one attempt sends.
pub(crate) struct DeliveryRequest<'a> {
    pub(crate) webhook: &'a WebhookRow,
    pub(crate) config: &'a Config,
    /// The last event the body tells of.
    pub(crate) last: Cursor,
    /// When the webhook had begun when the body was made.
    pub(crate) began_at: Timestamp,
    /// The version the body is written in.
    pub(crate) version: Version,
    pub(crate) body: Bytes,
}

impl DeliveryRequest<'_> {
    /// The same for every attempt, and for no other delivery: tasks may call their webhooks by the same name.
    /// A webhook that begins anew tells its task anew, so that it is not for the receiver to take for a repetition.
    pub(crate) fn id(&self) -> String {
        let WebhookRow { key, task, id, .. } = self.webhook;
        let name = if id == task.as_str() { "" } else { id };
        format!("{task}:{name}:{}-{:x}:{}", key.0, self.began_at.0, self.last)
    }

    /// The request, signed at a time in seconds. The address in the form that the guard has judged.
    pub(crate) fn request(
        self,
        target: &Target,
        secrets: &[Secret],
        seconds: i64,
    ) -> Result<Request<Bytes>, http::Error> {
        let id = self.id();
        let media_type = match self.version {
            Version::V1 => "application/a2a+json",
            Version::V03 => "application/json",
        };
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(target.url())
            .header(CONTENT_TYPE, media_type)
            .header(USER_AGENT, concat!("switchboard/", env!("CARGO_PKG_VERSION")))
            .header("a2a-version", self.version.as_str())
            .header("webhook-signature", sign(secrets, &id, seconds, &self.body))
            .header("webhook-timestamp", seconds)
            .header("webhook-id", id);
        if let Some(token) = &self.config.token {
            request = request.header(HeaderName::from_static("x-a2a-notification-token"), secret(token)?);
        }
        if let Some(authorization) = authorization(self.config) {
            request = request.header(AUTHORIZATION, secret(&authorization)?);
        }
        request.body(self.body)
    }
}

/// As the scheme says. A webhook with a token alone sends that, since there are receivers that look only here.
fn authorization(config: &Config) -> Option<String> {
    let named = config.authentication.as_ref();
    let credentials = named.and_then(|named| named.credentials.as_ref());
    match (named, credentials, &config.token) {
        (Some(named), Some(credentials), _) => {
            let scheme = if named.scheme.is_empty() { BEARER } else { &named.scheme };
            Some(format!("{scheme} {credentials}"))
        }
        (_, None, Some(token)) => Some(format!("{BEARER} {token}")),
        _ => None,
    }
}

fn secret(value: &str) -> Result<HeaderValue, http::Error> {
    let mut value = HeaderValue::from_str(value)?;
    value.set_sensitive(true);
    Ok(value)
}
