//! Responses that are not A2A: a web page, a proxy's error, a login form. The error describes them by media type and
//! excerpt.

use http::HeaderMap;
use http::header::{CONTENT_TYPE, LOCATION};
use serde::de::IgnoredAny;
use switchboard_a2a::jsonrpc::depth_exceeds;
use url::Url;

use crate::ClientError;
use crate::redact::redact_url;

/// The length of an excerpt in bytes.
const HINT: usize = 200;
/// How the description of JSON begins.
pub(crate) const JSON: &str = "JSON ";
/// How the description of a redirect begins.
pub(crate) const REDIRECT: &str = "a redirect to ";

/// The error for such a response, whose JSON may have so many levels.
pub(crate) fn error(origin: &str, status: u16, headers: &HeaderMap, body: &[u8], max_depth: usize) -> ClientError {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let text = String::from_utf8_lossy(&body[..body.len().min(16 << 10)]);
    let start = text.trim_start().get(..15).unwrap_or_default().to_ascii_lowercase();
    let is_page = media_type == "text/html" || start.starts_with("<!doctype html") || start.starts_with("<html");
    let (what, hint) = if let Some(location) = location(origin, status, headers) {
        (format!("{REDIRECT}{location}"), String::new())
    } else if body.is_empty() {
        ("nothing".to_owned(), String::new())
    } else if is_page {
        ("a web page (HTML)".to_owned(), title(&text))
    } else if media_type.contains("json") {
        (format!("{JSON}{}", fault(body, max_depth)), excerpt(&text))
    } else if media_type.is_empty() {
        ("something without a type".to_owned(), excerpt(&text))
    } else {
        (media_type, excerpt(&text))
    };
    ClientError::NotA2a { origin: origin.to_owned(), status, what, hint }
}

/// Why JSON is not a response.
fn fault(body: &[u8], max_depth: usize) -> String {
    if std::str::from_utf8(body).is_err() {
        return "with bytes that are no UTF-8".to_owned();
    }
    if depth_exceeds(body, max_depth) {
        return nested_deeper_than(max_depth);
    }
    match serde_json::from_slice::<IgnoredAny>(body) {
        Ok(_) => "that is no answer to this".to_owned(),
        Err(error) => format!("that cannot be read ({error})"),
    }
}

/// The error for an event that is nested deeper than this, on a stream that was opened in order.
pub(crate) fn too_deep_event(origin: &str, max_depth: usize) -> ClientError {
    let what = format!("{JSON}{}", nested_deeper_than(max_depth));
    ClientError::NotA2a { origin: origin.to_owned(), status: 200, what, hint: String::new() }
}

/// How JSON is described that is nested too deep.
pub(crate) fn nested_deeper_than(max_depth: usize) -> String {
    format!("nested deeper than {max_depth} levels, the most that is read")
}

/// The target of a redirect. It is reported and not followed: it could lead anywhere, with our credentials.
fn location(origin: &str, status: u16, headers: &HeaderMap) -> Option<String> {
    let target = headers.get(LOCATION).filter(|_| matches!(status, 301 | 302 | 303 | 307 | 308))?.to_str().ok()?;
    let whole = Url::parse(origin).and_then(|origin| origin.join(target));
    Some(excerpt(&redact_url(whole.as_ref().map_or(target, Url::as_str)))).filter(|location| !location.is_empty())
}

/// The title of a page, else its text without tags.
fn title(page: &str) -> String {
    let lower = page.to_ascii_lowercase();
    let inner = lower.find("<title").and_then(|open| {
        let start = open + lower[open..].find('>')? + 1;
        let end = start + lower[start..].find("</title")?;
        page.get(start..end)
    });
    if let Some(title) = inner.map(excerpt).filter(|title| !title.is_empty()) {
        return title;
    }
    let mut plain = String::new();
    let mut in_tag = false;
    for character in page.chars() {
        match character {
            '<' => in_tag = true,
            '>' => {
                in_tag = false;
                plain.push(' ');
            }
            _ if !in_tag => plain.push(character),
            _ => {}
        }
    }
    excerpt(&plain)
}

/// The beginning on one line, without control characters.
pub(crate) fn excerpt(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(|character: char| character.is_whitespace() || character.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > HINT {
            line.truncate(line.floor_char_boundary(HINT));
            line.push('…');
            break;
        }
    }
    line
}
