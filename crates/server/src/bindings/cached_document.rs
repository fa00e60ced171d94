//! A public JSON document: kept here as bytes, and cached by whoever asks for it.

mod conditional;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use sha2::{Digest, Sha256};

use super::response;
use crate::{Body, State};

/// A document as bytes.
pub(super) struct CachedDocument {
    body: Bytes,
    etag: HeaderValue,
}

impl CachedDocument {
    pub(super) fn new(body: Vec<u8>) -> Self {
        Self { etag: etag(&body), body: Bytes::from(body) }
    }

    /// All of it.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// The document, or nothing but its tag for those who have it already.
    pub(super) fn response(&self, state: &State, request: &HeaderMap) -> Response<Body> {
        let fresh = conditional::is_fresh(request, &self.etag, state.started);
        let mut response = Response::new(if fresh { Body::empty() } else { Body::full(self.body.clone()) });
        if fresh {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        if !fresh {
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
    let hash: [u8; 32] = Sha256::digest(body).into();
    let digits: String = hash[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&format!("\"{digits}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}
