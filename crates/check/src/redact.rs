//! Redacts our secrets in reports: agents repeat what they are sent, whole, in part, and in the encoding of a url or of
//! JSON.

use url::form_urlencoded::byte_serialize;

/// Shorter ones would be found in every other word.
const MIN_SECRET: usize = 4;
const REDACTED: &str = "***";
/// The end of a text that was cut.
pub(crate) const CUT: char = '…';

/// The secrets in every encoding, in lower case.
pub(crate) struct Redactor(Vec<String>);

impl Redactor {
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut all = Vec::new();
        for secret in secrets.into_iter().filter(|secret| secret.len() >= MIN_SECRET) {
            let quoted = serde_json::Value::from(secret.as_str()).to_string();
            all.push(quoted.trim_matches('"').to_ascii_lowercase());
            all.push(byte_serialize(secret.as_bytes()).collect::<String>().to_ascii_lowercase());
            all.push(secret.to_ascii_lowercase());
        }
        // Longer ones first: one may be part of another.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        all.dedup();
        Self(all)
    }

    pub(crate) fn redact(&self, text: &str) -> String {
        let whole = self.0.iter().fold(text.to_owned(), |text, secret| redact_whole(&text, secret));
        self.0.iter().fold(whole, |text, secret| redact_cut(&text, secret))
    }
}

fn redact_whole(text: &str, secret: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut described = String::with_capacity(text.len());
    let mut from = 0;
    for (at, found) in lower.match_indices(secret) {
        described.push_str(&text[from..at]);
        described.push_str(REDACTED);
        from = at + found.len();
    }
    described.push_str(&text[from..]);
    described
}

/// Redacts the beginning of a secret that was cut in the middle.
fn redact_cut(text: &str, secret: &str) -> String {
    let mut pieces: Vec<String> = text.split(CUT).map(str::to_owned).collect();
    let last = pieces.len() - 1;
    for piece in &mut pieces[..last] {
        let lower = piece.to_ascii_lowercase();
        let ends = secret.char_indices().map(|(at, _)| at).filter(|at| *at >= MIN_SECRET);
        if let Some(start_task) = ends.rev().find(|at| lower.ends_with(&secret[..*at])) {
            piece.truncate(piece.len() - start_task);
            piece.push_str(REDACTED);
        }
    }
    pieces.join(&CUT.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_in_every_spelling_and_where_they_are_cut() {
        let secrets = Redactor::new(["abc".to_owned(), "Sec \"ret/1".to_owned(), "longer-than-that".to_owned()]);
        for (text, hidden) in [
            ("abc stays", "abc stays"),
            ("x Sec \"ret/1 y", "x *** y"),
            ("x SEC \"RET/1 y", "x *** y"),
            ("{\"a\":\"Sec \\\"ret/1\"}", "{\"a\":\"***\"}"),
            ("/p?k=Sec+%22ret%2F1&b", "/p?k=***&b"),
            ("state longer-th… and more", "state ***… and more"),
            ("state lon…", "state lon…"),
            ("é longer-than-thatlonger-than-that", "é ******"),
        ] {
            assert_eq!(secrets.redact(text), hidden);
        }
    }
}
