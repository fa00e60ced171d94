//! Where a card may ask for the API key. The agent chooses the name, so headers that control the request are refused.

use http::HeaderName;

/// Headers that say what a request is and where it comes from.
const OURS: [&str; 15] = [
    "accept",
    "accept-encoding",
    "content-encoding",
    "content-type",
    "cookie",
    "date",
    "expect",
    "forwarded",
    "idempotency-key",
    "last-event-id",
    "origin",
    "referer",
    "user-agent",
    "via",
    "x-correlation-id",
];
/// Beginnings of more of them.
const FAMILIES: [&str; 5] = ["a2a-", "proxy-", "sec-", "x-a2a-", "x-forwarded-"];

/// Headers that frame a request, which the HTTP client alone may set.
const FRAMES: [&str; 8] =
    ["connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

pub(crate) fn frames(name: &HeaderName) -> bool {
    FRAMES.contains(&name.as_str())
}

pub(super) fn problem(location: &str, name: &str) -> Option<String> {
    // What may be the name of a header may be that of a cookie, and nothing else.
    let header = HeaderName::try_from(name);
    match (location, header) {
        ("header", Ok(header)) => {
            let name = header.as_str();
            let is_ours =
                frames(&header) || OURS.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family));
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
