//! Where a card may ask for the API key. The agent chooses the name, so headers that control the request are refused.

use http::HeaderName;

/// Headers that say what a request is, how long it is and where it goes.
const OURS: [&str; 23] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "expect",
    "forwarded",
    "host",
    "idempotency-key",
    "keep-alive",
    "last-event-id",
    "origin",
    "referer",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "x-correlation-id",
];
/// Beginnings of more of them.
const FAMILIES: [&str; 5] = ["a2a-", "proxy-", "sec-", "x-a2a-", "x-forwarded-"];

/// Headers that frame a request, which the HTTP client alone may set.
const FRAMES: [&str; 8] =
    ["connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

/// Whether a header belongs to the connection.
pub(crate) fn frames(name: &HeaderName) -> bool {
    FRAMES.contains(&name.as_str())
}

pub(super) fn problem(location: &str, name: &str) -> Option<String> {
    // What may be the name of a header may be that of a cookie, and nothing else.
    let header = HeaderName::try_from(name);
    match (location, header) {
        ("header", Ok(header)) => {
            let name = header.as_str();
            let is_ours = OURS.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family));
            is_ours.then(|| format!("the card wants the API key in the header {name}, which has another meaning"))
        }
        ("header" | "cookie", Err(_)) => {
            Some(format!("the card wants the API key in the {location} {name:?}, which cannot be the name of one"))
        }
        ("query", _) if name.is_empty() => {
            Some("the card wants the API key in the query and gives it no name".to_owned())
        }
        ("cookie", Ok(_)) | ("query", _) => None,
        _ => Some(format!("the card wants the API key in {location:?}: write header, cookie or query")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_connection_are_known_by_any_spelling() {
        for name in ["Content-Length", "transfer-encoding", "HOST"] {
            assert!(frames(&HeaderName::try_from(name).unwrap()), "{name}");
        }
        assert!(!frames(&HeaderName::from_static("x-trace")));
    }

    #[test]
    fn a_card_does_not_write_our_requests() {
        for (location, name) in
            [("header", "X-Agent-Key"), ("header", "Authorization"), ("cookie", "session"), ("query", "a&b=c")]
        {
            assert_eq!(problem(location, name), None, "{name}");
        }
        for (location, name) in [
            ("header", "Content-Length"),
            ("header", "A2A-Version"),
            ("header", "Proxy-Authorization"),
            ("header", "Host"),
            ("header", "X-Key: 1\r\nX"),
            ("cookie", "a=1; admin"),
            ("cookie", ""),
            ("query", ""),
            ("body", "key"),
        ] {
            assert!(problem(location, name).is_some(), "{location} {name}");
        }
    }
}
