//! Traces requests and responses at level TRACE, with credentials redacted. Costs nothing while the level is off.

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use serde_json::Value;
use switchboard_a2a::jsonrpc::depth_exceeds;

use crate::redact::{REDACTED, is_secret_header, redact_json, redact_url};

/// As deep as `serde_json` reads.
const MAX_DEPTH: usize = 128;
/// The most of a body that is logged.
const MAX_TRACED_BYTES: usize = 16 << 10;

pub(crate) fn request(request: &Request<Bytes>) {
    if is_enabled() {
        tracing::trace!("> {} {}", request.method(), redact_url(&request.uri().to_string()));
        headers('>', request.headers());
        body('>', request.body());
    }
}

/// A response, and its body if it is complete.
pub(crate) fn response(status: StatusCode, head: &HeaderMap, content: Option<&[u8]>) {
    if is_enabled() {
        tracing::trace!("< {status}");
        headers('<', head);
        if let Some(content) = content {
            body('<', content);
        }
    }
}

/// A whole event of a stream: half of one could not be redacted.
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
        let shown = if is_secret_header { REDACTED } else { value.to_str().unwrap_or("(not text)") };
        tracing::trace!("{side} {name}: {shown}");
    }
}

fn body(side: char, body: &[u8]) {
    if body.is_empty() {
        return;
    }
    if depth_exceeds(body, MAX_DEPTH) {
        return tracing::trace!("{side} {} bytes of JSON that is nested too deep to be redacted", body.len());
    }
    let mut text = String::from_utf8_lossy(body);
    if let Ok(mut json) = serde_json::from_str::<Value>(&text)
        && redact_json(&mut json)
    {
        text = json.to_string().into();
    }
    tracing::trace!("{side} {}", shortened(&text));
}

fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_TRACED_BYTES);
    match text.len() - end {
        0 => text.to_owned(),
        more => format!("{}… and {more} bytes more", &text[..end]),
    }
}
