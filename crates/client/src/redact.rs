//! Redacts secrets in messages and logs: keys in queries, passwords before hosts, headers, and fields of bodies.

use http::HeaderName;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE};
use serde_json::Value;

/// What replaces a secret.
pub(crate) const REDACTED: &str = "***";
/// Fields of a body that hold secrets.
const SECRETS: [&str; 8] =
    ["token", "credentials", "password", "secret", "client_secret", "access_token", "refresh_token", "device_code"];

/// A url without user and query, which may hold secrets.
#[must_use]
pub fn redact_url(url: &str) -> String {
    let (scheme, rest) = match url.find("://") {
        Some(at) => url.split_at(at + 3),
        None => ("", url),
    };
    let authority = &rest[..rest.find('/').unwrap_or(rest.len())];
    let (user, rest) = match authority.rfind('@') {
        Some(at) => (format!("{REDACTED}@"), &rest[at + 1..]),
        None => (String::new(), rest),
    };
    let (rest, mark) = match rest.find(['?', '#']) {
        Some(at) => (&rest[..at], format!("{}…", &rest[at..=at])),
        None => (rest, String::new()),
    };
    format!("{scheme}{user}{rest}{mark}")
}

/// Whether a header holds a secret, going by its name.
pub(crate) fn is_secret_header(name: &HeaderName) -> bool {
    [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE, SET_COOKIE].contains(name) || name.as_str().contains("api-key")
}

/// Redacts secrets; says whether there were any.
pub(crate) fn redact_json(json: &mut Value) -> bool {
    match json {
        // `count` and not `any`, so that none is skipped.
        Value::Array(items) => items.iter_mut().map(redact_json).filter(|is_found| *is_found).count() > 0,
        Value::Object(fields) => fields.iter_mut().fold(false, |found, (name, value)| match value {
            Value::String(text) if SECRETS.contains(&name.as_str()) => {
                REDACTED.clone_into(text);
                true
            }
            value => redact_json(value) || found,
        }),
        _ => false,
    }
}
