//! HSTS (`Strict-Transport-Security`): browsers that have once been here over TLS do not come without it again.

use http::HeaderValue;
use http::header::HOST;
use http::request::Parts;

use super::request_guard::host_of;

/// A year, as the preload lists of browsers demand; without subdomains.
pub(super) const A_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Whether to send the header. It holds for a name and all its ports, so under `localhost` it would shut every other
/// server on a developer's machine.
pub(super) fn is_due(parts: &Parts) -> bool {
    let named = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).map(host_of);
    let host = named.or_else(|| parts.uri.host()).unwrap_or_default();
    let last_label = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    !last_label.eq_ignore_ascii_case("localhost")
}
