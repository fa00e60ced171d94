//! What a terminal would show of a program's output, without the terminal's codes. They would do things to whoever
//! reads the text later, and they hide words from patterns.

use std::iter::Peekable;
use std::str::Chars;

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';

/// A line as a terminal would show it in the end: without escape sequences and control characters other than tabs; of
/// text that was written over with carriage returns, as progress bars do, the last version.
pub(crate) fn plain(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut characters = line.trim_end_matches('\r').chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            ESCAPE => skip_sequence(&mut characters),
            '\u{9b}' => skip_control_sequence(&mut characters),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut characters),
            '\r' => shown.clear(),
            '\t' => shown.push(character),
            character if character.is_control() => {}
            character => shown.push(character),
        }
    }
    shown
}

/// Whether a line is JSON, or the beginning of some. What stands in it was not said by the program to the terminal.
pub(crate) fn is_json(line: &str) -> bool {
    let line = line.trim();
    if !line.starts_with(['{', '[']) {
        return false;
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(line) {
        Ok(_) => true,
        Err(error) => error.is_eof(),
    }
}

/// The rest of what an escape character begins.
fn skip_sequence(characters: &mut Peekable<Chars<'_>>) {
    match characters.peek() {
        Some('[') => {
            characters.next();
            skip_control_sequence(characters);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            characters.next();
            skip_string(characters);
        }
        _ => {
            while characters.next_if(|character| (' '..='/').contains(character)).is_some() {}
            characters.next_if(|character| ('0'..='~').contains(character));
        }
    }
}

/// Parameters, then one character that ends them: colours, movements.
fn skip_control_sequence(characters: &mut Peekable<Chars<'_>>) {
    while characters.next_if(|character| (' '..='?').contains(character)).is_some() {}
    characters.next_if(|character| ('@'..='~').contains(character));
}

/// Text for the terminal itself, such as a window's title or a link's address. An escape character ends it too: it
/// begins the end mark, or it is a new sequence.
fn skip_string(characters: &mut Peekable<Chars<'_>>) {
    while let Some(character) = characters.next_if(|character| *character != ESCAPE) {
        if character == BELL || character == '\u{9c}' {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_terminal_shows_is_left() {
        for (line, shown) in [
            ("plain\ttext äß", "plain\ttext äß"),
            ("\u{1b}[1;31mred\u{1b}[0m and \u{1b}[38:2::1:2:3mmore", "red and more"),
            ("\u{1b}]0;a title\u{7}after", "after"),
            ("\u{1b}]8;;https://example.com\u{1b}\\link\u{1b}]8;;\u{1b}\\!", "link!"),
            ("\u{1b}(Bletters\u{1b}=", "letters"),
            ("\u{9b}31mred\u{9d}title\u{9c}!", "red!"),
            ("\u{1b}Psecret\u{1b}\\seen", "seen"),
            ("10 %\r50 %\r100 %\r", "100 %"),
            ("a\u{0}b\u{8}c\u{7f}d\u{85}", "abcd"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("\u{1b}[31", ""),
            ("\u{1b}]never ended", ""),
            ("\u{1b}ä", "ä"),
        ] {
            assert_eq!(plain(line), shown, "{line:?}");
        }
    }

    #[test]
    fn json_is_told_from_brackets_in_text() {
        for (line, json) in [
            (r#"{"text":"[y/N]"}"#, true),
            (r#"  {"text":"Continue? [y/N]"#, true),
            ("[1, 2]", true),
            ("[1] Continue? [y/N]", false),
            ("[y/N] ", false),
            ("{y/n}", false),
            ("12", false),
            ("", false),
        ] {
            assert_eq!(is_json(line), json, "{line}");
        }
        assert!(is_json(&"[".repeat(100_000)));
    }
}
