//! Sanitizes text from agents for the terminal and for shell commands that are shown to be copied.

use std::borrow::Cow;
use std::path::Path;

use crate::printer::is_terminal_control;

/// Removes control characters, except line breaks and tabs.
pub fn text(text: &str) -> Cow<'_, str> {
    let is_bad = |character: char| is_terminal_control(character) && !matches!(character, '\n' | '\t');
    if text.contains(is_bad) { Cow::Owned(text.replace(is_bad, "")) } else { Cow::Borrowed(text) }
}

/// Sanitized text on one line.
pub fn line(text: &str) -> String {
    let words = text.split(|character: char| character.is_whitespace() || is_terminal_control(character));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Redacts the user part of every URL in a text, because a password typed there must not reach a log.
pub fn redact_passwords(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let end = after.find(|character: char| character.is_whitespace() || "/?#\"'".contains(character));
        let authority = &after[..end.unwrap_or(after.len())];
        rest = match authority.rfind('@') {
            Some(at) => {
                shown.push_str("***");
                &after[at..]
            }
            None => after,
        };
    }
    shown + rest
}

/// Quotes a text as one shell word.
pub fn shell_word(text: &str) -> String {
    quoted(&line(text))
}

/// Quotes a path as one shell word. Unlike [`shell_word`] it keeps repeated spaces, which are part of the name.
pub fn shell_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    match text.contains(is_terminal_control) {
        true => shell_word(&text),
        false => quoted(&text),
    }
}

fn quoted(text: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_.:/@%+=".contains(character);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
