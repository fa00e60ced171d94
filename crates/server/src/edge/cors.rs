//! CORS: tells browsers that a configured origin may call. Whether it may is decided by the request guard.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

use crate::Body;

const METHODS: &str = "GET, HEAD, POST, DELETE, OPTIONS";
/// What A2A clients in a browser send.
const REQUEST_HEADERS: &str = "accept, authorization, content-type, x-api-key, a2a-version, a2a-extensions, \
     x-a2a-extensions, idempotency-key, last-event-id, x-request-id, x-correlation-id, x-parent-id, cache-control, \
     traceparent, tracestate";
/// What they read.
const RESPONSE_HEADERS: &str =
    "a2a-version, a2a-extensions, x-a2a-extensions, etag, retry-after, www-authenticate, x-request-id";
/// Seconds a browser may remember; origins change only with a restart.
const MAX_AGE: &str = "600";

const REQUEST_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(ORIGIN) && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The response that permits the real request.
pub(crate) fn preflight(request: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(REQUEST_HEADERS));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
    if request.contains_key(REQUEST_PRIVATE_NETWORK) {
        headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }
    response
}

/// Lets the page read the response.
pub(crate) fn expose(origin: HeaderValue, response: &mut HeaderMap) {
    response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    response.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(RESPONSE_HEADERS));
}

/// Tells caches that another page, or none, gets another response.
pub(crate) fn vary(response: &mut HeaderMap) {
    response.append(VARY, HeaderValue::from_static("origin"));
}
