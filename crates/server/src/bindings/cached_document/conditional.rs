//! Whether the caller already has what it asks for.

use std::time::{Duration, SystemTime};

use http::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue};

/// Compares tags if the caller has any, else times. Tags are compared weakly, as for every GET.
pub(super) fn is_fresh(headers: &HeaderMap, etag: &HeaderValue, modified: SystemTime) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_go_before_times() {
        let modified = SystemTime::UNIX_EPOCH + Duration::from_millis(1_500);
        let etag = HeaderValue::from_static("\"a\"");
        let fresh = |pairs: &[(http::HeaderName, &'static str)]| {
            let pairs = pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
            is_fresh(&pairs.collect(), &etag, modified)
        };
        assert!(!fresh(&[]));
        assert!(fresh(&[(IF_NONE_MATCH, "\"b\", W/\"a\"")]));
        assert!(fresh(&[(IF_NONE_MATCH, "*")]));
        assert!(!fresh(&[(IF_NONE_MATCH, "\"b\""), (IF_MODIFIED_SINCE, "Thu, 01 Jan 1970 00:00:09 GMT")]));
        assert!(fresh(&[(IF_MODIFIED_SINCE, "Thu, 01 Jan 1970 00:00:01 GMT")]));
        assert!(!fresh(&[(IF_MODIFIED_SINCE, "Thu, 01 Jan 1970 00:00:00 GMT")]));
        assert!(!fresh(&[(IF_MODIFIED_SINCE, "yesterday")]));
    }
}
