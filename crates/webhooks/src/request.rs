//! The HTTP request of one attempt: the stored body, with headers from the current configuration.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Request};
use switchboard_a2a::Version;
use switchboard_egress::Target;
use switchboard_engine::store::webhooks::{DeliveryRow, WebhookRow};

use crate::config::Config;
use crate::render::Form;
use crate::signature::{Secret, sign};

/// The default authentication scheme.
const BEARER: &str = "Bearer";

/// The request, signed at a time in seconds. The URL is spelled as the SSRF guard has checked it.
pub(crate) fn signed_request(
    (webhook, config): (&WebhookRow, &Config),
    delivery: &DeliveryRow,
    body: Bytes,
    target: &Target,
    secrets: &[Secret],
    seconds: i64,
) -> Result<Request<Bytes>, http::Error> {
    let id = webhook_id(webhook, delivery);
    let version = Form::numbered(delivery.form).version;
    let media_type = match version {
        Version::V1 => "application/a2a+json",
        Version::V03 => "application/json",
    };
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(target.url())
        .header(CONTENT_TYPE, media_type)
        .header(USER_AGENT, concat!("switchboard/", env!("CARGO_PKG_VERSION")))
        .header("a2a-version", version.as_str())
        .header("webhook-signature", sign(secrets, &id, seconds, &body))
        .header("webhook-timestamp", seconds)
        .header("webhook-id", id);
    if let Some(token) = &config.push.token {
        request = request.header(HeaderName::from_static("x-a2a-notification-token"), secret(token)?);
    }
    if let Some(authorization) = authorization(config) {
        request = request.header(AUTHORIZATION, secret(&authorization)?);
    }
    request.body(body)
}

/// The `webhook-id`: the same for every attempt and unique to the delivery, by which receivers deduplicate. It holds the
/// task because webhooks of two tasks may have the same name, and the beginning because a webhook that begins again sends
/// its task again.
fn webhook_id(webhook: &WebhookRow, delivery: &DeliveryRow) -> String {
    let WebhookRow { key, task, id, .. } = webhook;
    let name = if id == task.as_str() { "" } else { id };
    format!("{task}:{name}:{}-{:x}:{}", key.0, delivery.began_at.0, delivery.last)
}

/// The `Authorization` header. A webhook with a token alone sends it here too, for receivers that look only here.
fn authorization(config: &Config) -> Option<String> {
    let named = config.push.authentication.as_ref();
    let credentials = named.and_then(|named| named.credentials.as_ref());
    match (named, credentials, &config.push.token) {
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
