//! Redacts secrets in texts and JSON from outside before they are stored where others read them, such as the journal. What
//! a credential looks like is a guess: by the name before it, by its scheme, or by the prefix that its issuer gives it.

use serde_json::Value;

use crate::sanitize;

/// What replaces a secret.
const REDACTED: &str = "***";
/// How names of secrets end, without case and punctuation. Names of variables that hold one, such as `apiKeyEnv`, do not.
const NAMES: [&str; 10] = [
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "privatekey",
    "credential",
    "credentials",
    "authorization",
];
/// What issuers begin their credentials with; `eyJ` begins a JSON web token.
const PREFIXES: [&str; 11] =
    ["a2a_", "sk-", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "eyJ"];
/// Shorter words with such a prefix are words.
const SHORTEST: usize = 16;

/// What the next word is, going by those before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Word,
    /// The name of a secret was before it: `:` or `=` makes the word behind that the secret.
    Assignment,
    /// The secret itself.
    Secret,
    /// What follows `Bearer` or `Basic`, if it looks random.
    Credential,
}

/// Redacts secrets in a text.
pub fn text(text: &str) -> String {
    let text = sanitize::redact_passwords(text);
    let mut shown = String::with_capacity(text.len());
    let mut next = Next::Word;
    for piece in text.split_inclusive(is_between) {
        let end = piece.char_indices().last().filter(|(_, last)| is_between(*last)).map_or(piece.len(), |(at, _)| at);
        let (word, between) = piece.split_at(end);
        if !word.is_empty() {
            next = add(&mut shown, word, next);
        }
        shown.push_str(between);
    }
    shown
}

/// Redacts secrets in every text of a JSON value, and all that has the name of a secret.
pub fn json(value: &mut Value) {
    match value {
        Value::String(given) => *given = text(given),
        Value::Array(items) => items.iter_mut().for_each(json),
        Value::Object(members) => {
            for (name, member) in members {
                let is_secret = is_name(name) && (member.is_string() || member.is_object() || member.is_array());
                if is_secret { *member = REDACTED.into() } else { json(member) }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Adds a word as it may be shown; says what the next one is.
fn add(shown: &mut String, word: &str, next: Next) -> Next {
    if word == ":" || word == "=" {
        shown.push_str(word);
        return if next == Next::Assignment { Next::Secret } else { next };
    }
    if word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic") {
        shown.push_str(word);
        return if next == Next::Secret { Next::Secret } else { Next::Credential };
    }
    let is_random = word.len() >= SHORTEST || (word.len() >= 8 && word.bytes().any(|byte| byte.is_ascii_digit()));
    let is_issued = word.len() >= SHORTEST && PREFIXES.iter().any(|prefix| word.starts_with(prefix));
    if next == Next::Secret || (next == Next::Credential && is_random) || is_issued {
        shown.push_str(REDACTED);
        return Next::Word;
    }
    if let Some(at) = word.find(['=', ':']).filter(|at| is_name(&word[..*at])) {
        let (name, value) = word.split_at(at + 1);
        shown.push_str(name);
        if value.is_empty() {
            return Next::Secret;
        }
        shown.push_str(REDACTED);
        return Next::Word;
    }
    shown.push_str(word);
    if is_name(word) { Next::Assignment } else { Next::Word }
}

fn is_between(character: char) -> bool {
    character.is_whitespace() || "\"'`,;()[]{}<>?&#".contains(character)
}

fn is_name(word: &str) -> bool {
    let letters: String = word.chars().filter(char::is_ascii_alphanumeric).collect();
    let letters = letters.to_ascii_lowercase();
    NAMES.iter().any(|name| letters.ends_with(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{json as redact, text};

    #[test]
    fn credentials_are_redacted_and_what_is_said_about_them_is_kept() {
        for (given, shown) in [
            ("the token has expired, ask for a new password", "the token has expired, ask for a new password"),
            ("a bearer of news", "a bearer of news"),
            (
                "see https://ci.example/run?id=7&access_token=abc#x",
                "see https://ci.example/run?id=7&access_token=***#x",
            ),
            ("https://ann:pass@host/x", "https://***@host/x"),
            ("Authorization: Bearer abc", "Authorization: Bearer ***"),
            ("sent Bearer abcdef0123456789 twice", "sent Bearer *** twice"),
            (r#"{"apiKey": "abc", "keyEnv": "NAME"}"#, r#"{"apiKey": "***", "keyEnv": "NAME"}"#),
            ("DB_PASSWORD=hunter2 was set", "DB_PASSWORD=*** was set"),
            ("key sk-0123456789abcdef leaked", "key *** leaked"),
            ("", ""),
        ] {
            assert_eq!(text(given), shown);
        }
        let mut value = json!({
            "clientSecret": "abc", "apiKeyEnv": "NAME", "maxToken": 7,
            "log": ["token=abc"], "credentials": { "user": "ann" },
        });
        redact(&mut value);
        let shown = json!({
            "clientSecret": "***", "apiKeyEnv": "NAME", "maxToken": 7,
            "log": ["token=***"], "credentials": "***",
        });
        assert_eq!(value, shown);
    }
}
