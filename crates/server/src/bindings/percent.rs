//! Percent-decoding of paths and queries. What is not UTF-8 afterwards is no name of ours, and a query that holds it is
//! refused: a filter that is left out would show more than was asked for.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use switchboard_a2a::Error;

/// What a parameter's name is cut to in an error.
const LONGEST_NAME: usize = 80;

/// Decodes one path segment. A `%` without two digits stands for itself.
pub fn decode(text: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(text).decode_utf8().ok()
}

/// The pairs of a query, in order; `+` is a space there.
pub fn query(query: Option<&str>) -> Result<Vec<(String, String)>, Error> {
    let read = |(key, value): (&str, &str)| match (form(key), form(value)) {
        (Some(key), Some(value)) => Ok((key, value)),
        _ => {
            let name: String = lossy(key).chars().take(LONGEST_NAME).collect();
            Err(Error::invalid_field(name, "is not UTF-8 once its percent-encoding is undone"))
        }
    };
    pairs(query).map(read).collect()
}

/// The first value under a name, in any case. What is not UTF-8 in it is replaced, so it equals no expected value.
pub(super) fn find(query: Option<&str>, name: &str) -> Option<String> {
    let found = pairs(query).find(|(key, _)| form(key).is_some_and(|key| key.eq_ignore_ascii_case(name)));
    found.map(|(_, value)| lossy(value))
}

fn pairs(query: Option<&str>) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

fn form(text: &str) -> Option<String> {
    decode(&text.replace('+', " ")).map(Cow::into_owned)
}

fn lossy(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}
