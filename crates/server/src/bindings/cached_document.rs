//! A public JSON document: kept here as bytes, with the validators of HTTP caching (`ETag`, `Last-Modified`).

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use switchboard_engine::sha256;

use super::response;
use crate::{Body, State};

pub(super) struct CachedDocument {
    pub(super) body: Bytes,
    etag: HeaderValue,
}

impl CachedDocument {
    pub(super) fn new(body: Vec<u8>) -> Self {
        Self { etag: etag(&body), body: Bytes::from(body) }
    }

    /// The document, or 304 without a body if the client has it already.
    pub(super) fn response(&self, state: &State, request: &HeaderMap) -> Response<Body> {
        let is_fresh = is_fresh(request, &self.etag, state.started);
        let mut response = Response::new(if is_fresh { Body::empty() } else { Body::full(self.body.clone()) });
        if is_fresh {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        if !is_fresh {
            headers.insert(CONTENT_TYPE, response::JSON);
        }
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"));
        headers.insert(ETAG, self.etag.clone());
        if let Ok(started) = HeaderValue::from_str(&httpdate::fmt_http_date(state.started)) {
            headers.insert(LAST_MODIFIED, started);
        }
        response
    }
}

fn etag(body: &[u8]) -> HeaderValue {
    let digits: String = sha256([body])[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&format!("\"{digits}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Whether the client's copy is current. Tags go before times, and are compared weakly, as for every GET.
fn is_fresh(headers: &HeaderMap, etag: &HeaderValue, modified: SystemTime) -> bool {
    if headers.contains_key(IF_NONE_MATCH) {
        let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
        return tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag).as_bytes() == etag.as_bytes());
    }
    let since = headers.get(IF_MODIFIED_SINCE).and_then(|value| value.to_str().ok());
    let since = since.and_then(|text| httpdate::parse_http_date(text).ok());
    // The header has whole seconds only.
    since.is_some_and(|since| modified < since + Duration::from_secs(1))
}
