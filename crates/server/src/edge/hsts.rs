//! HSTS (`Strict-Transport-Security`): browsers that have once been here over TLS do not come without it again.

use http::header::HOST;
use http::request::Parts;
use http::{HeaderName, HeaderValue};

use super::request_guard::host_of;

pub(super) const NAME: HeaderName = http::header::STRICT_TRANSPORT_SECURITY;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn is_due_at(uri: &str, host: Option<&str>) -> bool {
        let mut request = http::Request::get(uri);
        if let Some(host) = host {
            request = request.header(HOST, host);
        }
        is_due(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn it_is_promised_for_every_name_but_the_one_that_all_servers_of_a_machine_share() {
        for host in
            ["agents.example.com", "agents.example.com:8443", "127.0.0.1:41242", "[::1]:41242", "localhost.example"]
        {
            assert!(is_due_at("/", Some(host)), "{host}");
        }
        for host in ["localhost", "LOCALHOST:41242", "localhost.", "app.localhost:1"] {
            assert!(!is_due_at("/", Some(host)), "{host}");
        }
        assert!(is_due_at("https://agents.example.com/x", None));
        assert!(!is_due_at("https://localhost:41242/x", None), "HTTP/2 has no Host");
    }
}
