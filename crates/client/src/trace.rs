//! What goes over the wire, line by line, for whoever looks for a fault: at level TRACE, without credentials. Costs nothing
//! while nobody listens.

use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE};
use http::{HeaderMap, HeaderName, Request, StatusCode};
use serde_json::Value;

use crate::redact::shown;

/// The most of a body that is told.
const MAX_LIFETIME: usize = 16 << 10;
/// Fields of a body that hold secrets.
const SECRETS: [&str; 8] =
    ["token", "credentials", "password", "secret", "client_secret", "access_token", "refresh_token", "device_code"];
const HIDDEN: &str = "***";

/// A request as it leaves.
pub(crate) fn request(request: &Request<Bytes>) {
    if is_enabled() {
        tracing::trace!("> {} {}", request.method(), shown(&request.uri().to_string()));
        headers('>', request.headers());
        body('>', request.body());
    }
}

/// An answer, and its body if all of it is there.
pub(crate) fn response(status: StatusCode, head: &HeaderMap, content: Option<&[u8]>) {
    if is_enabled() {
        tracing::trace!("< {status}");
        headers('<', head);
        if let Some(content) = content {
            body('<', content);
        }
    }
}

/// An event of an answer that comes in events: all of it, since half of one could hide what is a secret.
pub(crate) fn event(event: &str) {
    if is_enabled() {
        body('<', event.as_bytes());
    }
}

fn is_enabled() -> bool {
    tracing::enabled!(tracing::Level::TRACE)
}

fn headers(side: char, headers: &HeaderMap) {
    for (name, value) in headers {
        let is_secret_header = value.is_sensitive() || is_secret_header(name);
        let shown = if is_secret_header { HIDDEN } else { value.to_str().unwrap_or("(not text)") };
        tracing::trace!("{side} {name}: {shown}");
    }
}

/// Whether a header holds a secret, going by its name.
pub(crate) fn is_secret_header(name: &HeaderName) -> bool {
    [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE, SET_COOKIE].contains(name) || name.as_str().contains("api-key")
}

fn body(side: char, body: &[u8]) {
    if body.is_empty() {
        return;
    }
    let mut text = String::from_utf8_lossy(body);
    if let Ok(mut json) = serde_json::from_str::<Value>(&text)
        && redact_json(&mut json)
    {
        text = json.to_string().into();
    }
    tracing::trace!("{side} {}", shortened(&text));
}

/// Hides secrets; whether there were any.
fn redact_json(json: &mut Value) -> bool {
    match json {
        // All of them, also after the first.
        Value::Array(items) => items.iter_mut().map(redact_json).filter(|is_found| *is_found).count() > 0,
        Value::Object(fields) => fields.iter_mut().fold(false, |found, (name, value)| match value {
            Value::String(text) if SECRETS.contains(&name.as_str()) => {
                HIDDEN.clone_into(text);
                true
            }
            value => redact_json(value) || found,
        }),
        _ => false,
    }
}

fn shortened(text: &str) -> String {
    let end = (0..=text.len().min(MAX_LIFETIME)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    match text.len() - end {
        0 => text.to_owned(),
        more => format!("{}… and {more} bytes more", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_bodies_are_hidden_and_nothing_else() {
        let mut json = serde_json::json!({ "a": [{ "token": "x", "url": "u" }], "token": 7, "text": "token" });
        assert!(redact_json(&mut json));
        assert_eq!(json, serde_json::json!({ "a": [{ "token": "***", "url": "u" }], "token": 7, "text": "token" }));
        assert!(!redact_json(&mut serde_json::json!(["token"])));
        assert_eq!(
            shortened(&"ä".repeat(MAX_LIFETIME)),
            format!("{}… and 16384 bytes more", "ä".repeat(MAX_LIFETIME / 2))
        );
    }
}
