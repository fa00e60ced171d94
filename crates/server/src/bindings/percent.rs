//! Percent-encoding of paths and queries, undone. What is not UTF-8 afterwards is nobody's name.

use std::borrow::Cow;

/// Decodes one path segment. A `%` without two digits stands for itself.
pub(super) fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|_| byte == b'%');
        match digits.and_then(|digits| Some((digit(digits[0])?, digit(digits[1])?))) {
            Some((high, low)) => {
                decoded.push(high << 4 | low);
                at += 3;
            }
            None => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

/// The pairs of a query, in order; `+` is a space there. Pairs that cannot be read are left out.
pub(super) fn query(query: Option<&str>) -> Vec<(String, String)> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs
        .filter_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((form(key)?, form(value)?))
        })
        .collect()
}

fn form(text: &str) -> Option<String> {
    decode(&text.replace('+', " ")).map(Cow::into_owned)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone() {
        assert_eq!(decode("a%2Fb%3ac").as_deref(), Some("a/b:c"));
        assert_eq!(decode("100%").as_deref(), Some("100%"));
        assert_eq!(decode("%zz%4").as_deref(), Some("%zz%4"));
        assert_eq!(decode("%C3%A9").as_deref(), Some("é"));
        assert_eq!(decode("%ff"), None);
        assert_eq!(
            query(Some("a=1+2&b=%26&c&&=d")),
            [("a", "1 2"), ("b", "&"), ("c", ""), ("", "d")].map(|(key, value)| (key.to_owned(), value.to_owned()))
        );
    }
}
