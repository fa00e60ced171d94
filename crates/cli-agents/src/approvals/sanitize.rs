//! Sanitizes text for an approval: invisible and misleading characters are escaped, so that two different commands
//! never read alike.
//!
//! | in the text | shown as |
//! |---|---|
//! | one space between words, one newline | itself |
//! | more whitespace in a row | `·` for each space, `⏎` before each newline if there are several |
//! | more than 16 of one of these in a row | `«1985 spaces»` |
//! | anything else that shows nothing, or changes how the rest is shown | `\u{200b}` |
//! | combining marks, except up to two behind a letter of a script that is written with them | `\u{301}` |
//! | letters of scripts that are written from right to left, which reorder what is around them | `\u{5d0}` |
//!
//! Signs of this notation that stand in the text itself are escaped too, and what looks like them.

use std::fmt::Write as _;

/// Longer runs of one character are shown as a number.
const LONGEST_RUN: usize = 16;
/// So many combining marks are shown behind a letter.
const MOST_MARKS: usize = 2;
/// Signs of the notation and what looks like one: middle dots, arrows to a new line, double angles, backslashes.
const NOTATION: [&str; 4] = [
    "·\u{387}\u{1427}\u{16eb}\u{2027}\u{2219}\u{22c5}\u{2e31}\u{2e33}\u{30fb}\u{a78f}\u{ff65}\u{10101}",
    "⏎\u{21a9}\u{21b5}\u{2ba0}",
    "«\u{226a}\u{27ea}",
    "\u{2216}\u{29f5}\u{29f9}\u{fe68}\u{ff3c}",
];

/// Sanitizes a text: escapes everything invisible in it.
pub(super) fn sanitize(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    // How many combining marks may follow.
    let mut marks = 0;
    while let Some(first) = rest.chars().next() {
        let space = &rest[..rest.find(|character| !is_space(character)).unwrap_or(rest.len())];
        match space {
            "" => marks = show(first, rest, marks, &mut shown),
            " " | "\n" => shown.push_str(space),
            _ => show_space(space, &mut shown),
        }
        if !space.is_empty() {
            marks = 0;
        }
        rest = &rest[space.len().max(first.len_utf8())..];
    }
    shown
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\n' | '\t')
}

/// Whitespace that is more than one space or one newline.
fn show_space(space: &str, shown: &mut String) {
    // One newline and what indents the line after it reads as it is.
    let newline = if space.matches('\n').nth(1).is_some() { "⏎\n" } else { "\n" };
    let mut rest = space;
    while let Some(first) = rest.chars().next() {
        let run = rest.len() - rest.trim_start_matches(first).len();
        let (sign, name) = match first {
            '\n' => (newline, "line breaks"),
            ' ' => ("·", "spaces"),
            _ => ("\\u{9}", "tabs"),
        };
        match run > LONGEST_RUN {
            true => {
                let _ = write!(shown, "«{run} {name}»");
                if first == '\n' {
                    shown.push('\n');
                }
            }
            false => shown.push_str(&sign.repeat(run)),
        }
        rest = &rest[run..];
    }
}

/// One character. `rest` begins with it. Up to `marks` combining marks are shown; returns how many of them after it.
fn show(character: char, rest: &str, marks: usize, shown: &mut String) -> usize {
    let next_is_number = || rest.chars().nth(1).is_some_and(char::is_numeric);
    let is_notation = match character {
        '\\' => rest.starts_with("\\u{"),
        '《' => next_is_number(),
        _ => NOTATION.iter().any(|signs| signs.contains(character)),
    };
    let is_mark = is_mark(character);
    if is_notation || is_invisible(character) || is_right_to_left(character) || (is_mark && marks == 0) {
        shown.extend(character.escape_unicode());
        return 0;
    }
    shown.push(character);
    match is_mark {
        true => marks - 1,
        // Latin, Greek and Cyrillic letters with marks are characters of their own.
        false if character >= '\u{900}' && character.is_alphabetic() => MOST_MARKS,
        false => 0,
    }
}

/// Whether it is drawn onto the character before it.
fn is_mark(character: char) -> bool {
    !character.is_ascii() && character.escape_debug().next() == Some('\\')
}

/// Whether it is in a block of scripts that are written from right to left.
fn is_right_to_left(character: char) -> bool {
    matches!(
        character,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}' | '\u{10800}'..='\u{10fff}'
            | '\u{1e800}'..='\u{1efff}'
    )
}

/// Whether it shows nothing by itself: control and format characters (zero-width, bidirectional, tags), unassigned and
/// private ones, unusual spaces, variation selectors, fillers and blank glyphs, and what makes a letter look like
/// another one that there is too (accents of no script, voicing marks, parts of Korean syllables).
fn is_invisible(character: char) -> bool {
    if character.is_ascii_graphic() {
        return false;
    }
    let is_filler = matches!(
        character,
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}'
            | '\u{13441}' | '\u{13442}' | '\u{16fe4}' | '\u{1d159}'
    );
    let is_part = matches!(
        character,
        '\u{300}'..='\u{36f}' | '\u{1100}'..='\u{11ff}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}' | '\u{3099}' | '\u{309a}' | '\u{a960}'..='\u{a97f}' | '\u{d7b0}'..='\u{d7ff}'
            | '\u{fe20}'..='\u{fe2f}'
    );
    // The standard library knows what is not printable. It takes accents for that too, but not behind a letter.
    let behind_letter = String::from_iter(['a', character]);
    is_filler || is_part || behind_letter.escape_debug().nth(1) == Some('\\')
}
