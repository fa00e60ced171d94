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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_a_terminal_obeys() {
        assert_eq!(text("a\tb\nc"), "a\tb\nc");
        assert_eq!(text("\u{1b}[2J\u{1b}]0;x\u{7}red\r\n\u{9b}31m\u{202e}"), "[2J]0;xred\n31m");
        assert_eq!(line(" a\n\u{1b}[31mb\tc "), "a [31mb c");
    }

    #[test]
    fn passwords_are_not_repeated() {
        let shown = redact_passwords("http://u:p@host/a@b cannot be called; 'https://p@q@x:1' and http://y/z@w");
        assert_eq!(shown, "http://***@host/a@b cannot be called; 'https://***@x:1' and http://y/z@w");
    }

    #[test]
    fn a_word_stays_one_word() {
        assert_eq!(shell_word("https://agent.example/a2a?x"), "'https://agent.example/a2a?x'");
        assert_eq!(shell_word("0198-ab_C"), "0198-ab_C");
        assert_eq!(shell_word("$(rm -rf ~)'"), r"'$(rm -rf ~)'\'''");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_path(Path::new("/srv/a  b/it's")), r"'/srv/a  b/it'\''s'");
    }
}
