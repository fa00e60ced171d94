//! Sanitizes a program's output: the text a terminal would show, without escape sequences and control characters. They
//! would act on the terminal of a later reader, and they hide words from patterns and from people.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';

/// Output for a terminal as the terminal would finally show it, line by line.
#[must_use]
pub fn plain_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(plain_line).collect();
    lines.join("\n")
}

/// A message or a part of one; borrowed unchanged if it holds no control characters.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    match text.contains(is_code) {
        true => Cow::Owned(plain_lines(text)),
        false => Cow::Borrowed(text),
    }
}

/// Carriage returns are none: in a message they are how some end their lines.
fn is_code(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\r' | '\t')
}

/// A line without escape sequences and control characters other than tabs. A carriage return within it begins another
/// line: a terminal would overwrite what stands before it, but that is output too.
pub(crate) fn plain_line(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut characters = line.trim_end_matches('\r').chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            ESCAPE => skip_sequence(&mut characters),
            '\u{9b}' => skip_control_sequence(&mut characters),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut characters),
            '\r' if shown.is_empty() || shown.ends_with('\n') => {}
            '\r' => shown.push('\n'),
            '\t' => shown.push(character),
            character if character.is_control() => {}
            character => shown.push(character),
        }
    }
    shown
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
