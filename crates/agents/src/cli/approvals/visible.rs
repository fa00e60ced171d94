//! Text for people who decide by it: what cannot be seen is escaped, so that two different commands never read alike.
//!
//! | in the text | shown as |
//! |---|---|
//! | one space between words, one newline | itself |
//! | more whitespace in a row | `·` for each space, `⏎` before each newline if there are several |
//! | more than 16 of one of these in a row | `«1985 spaces»` |
//! | anything else that shows nothing, or changes how the rest is shown | `\u{200b}` |
//!
//! Signs of this notation that stand in the text itself are escaped too.

use std::fmt::Write as _;

/// Longer runs of one character are shown as a number.
const LONGEST_RUN: usize = 16;

/// A text with everything in it made visible.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let space = &rest[..rest.find(|character| !is_space(character)).unwrap_or(rest.len())];
        match space {
            "" => show(first, rest, &mut shown),
            " " | "\n" => shown.push_str(space),
            _ => show_space(space, &mut shown),
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

/// One character. `rest` begins with it.
fn show(character: char, rest: &str, shown: &mut String) {
    let is_notation = match character {
        '·' | '⏎' => true,
        '«' => rest.chars().nth(1).is_some_and(|next| next.is_ascii_digit()),
        '\\' => rest.starts_with("\\u{"),
        _ => false,
    };
    match is_notation || is_invisible(character) {
        true => shown.extend(character.escape_unicode()),
        false => shown.push(character),
    }
}

/// Whether it shows nothing by itself: control and format characters (zero-width, bidirectional, tags), unassigned and
/// private ones, unusual spaces, variation selectors and fillers.
fn is_invisible(character: char) -> bool {
    if character.is_ascii_graphic() {
        return false;
    }
    let is_filler = matches!(
        character,
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}'
    );
    // The standard library knows what is not printable. It takes accents for that too, but not behind a letter.
    let behind_letter = String::from_iter(['a', character]);
    is_filler || behind_letter.escape_debug().nth(1) == Some('\\')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_in_a_command_hides() {
        let spaces = " ".repeat(1_985);
        for (text, shown) in [
            ("cargo test --all", "cargo test --all"),
            ("if a\nthen b\nfi", "if a\nthen b\nfi"),
            ("caf\u{65}\u{301} ö 🦀 नमस्ते", "caf\u{65}\u{301} ö 🦀 नमस्ते"),
            (&format!("echo ok{spaces}; touch EVIL"), "echo ok«1985 spaces»; touch EVIL"),
            ("a  b", "a··b"),
            ("for x:\n    y\n\tz", "for x:\n····y\n\\u{9}z"),
            ("a\n\nb", "a⏎\n⏎\nb"),
            ("a\n \n b", "a⏎\n·⏎\n·b"),
            (&format!("a{}b", "\n".repeat(40)), "a«40 line breaks»\nb"),
            (&format!("a{}b", "\t".repeat(17)), "a«17 tabs»b"),
            ("rm -rf ~\u{1b}[2K\u{8}echo", "rm -rf ~\\u{1b}[2K\\u{8}echo"),
            ("rm #\rls\r\nx", "rm #\\u{d}ls\\u{d}\nx"),
            ("\u{202e}a\u{2066}b\u{200b}\u{200d}\u{feff}", "\\u{202e}a\\u{2066}b\\u{200b}\\u{200d}\\u{feff}"),
            ("x\u{e0041}\u{fe0f}\u{e0101}\u{ad}", "x\\u{e0041}\\u{fe0f}\\u{e0101}\\u{ad}"),
            ("a\u{a0}b\u{3000}c\u{2028}d\u{2800}", "a\\u{a0}b\\u{3000}c\\u{2028}d\\u{2800}"),
            ("\\u{200b} \\n · ⏎ «1 x» «a»", "\\u{5c}u{200b} \\n \\u{b7} \\u{23ce} \\u{ab}1 x» «a»"),
        ] {
            assert_eq!(visible(text), shown, "{text:?}");
        }
    }

    /// Texts of what the notation is made of and what it escapes, so that collisions would be found.
    fn tricky() -> impl Strategy<Value = String> {
        let pieces = [
            " ",
            "  ",
            "\n",
            "\t",
            "\r",
            "·",
            "⏎",
            "«",
            "»",
            "«17 spaces»",
            "«40 line breaks»\n",
            "\\",
            "\\u{9}",
            "u{9}",
            "\\u{5c}",
            "{",
            "}",
            "9",
            "1",
            "7",
            "a",
            "\u{200b}",
            "\u{301}",
        ];
        let long = (0..3_usize, 14..20_usize).prop_map(|(which, times)| [" ", "\n", "\t"][which].repeat(times));
        let piece = prop_oneof![
            6 => prop::sample::select(pieces.to_vec()).prop_map(str::to_owned),
            1 => long,
            1 => any::<char>().prop_map(String::from),
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    /// What a text was that is shown like this.
    fn read_back(shown: &str) -> String {
        let mut text = String::new();
        let mut rest = shown;
        while let Some(first) = rest.chars().next() {
            if let Some(escape) = rest.strip_prefix("\\u{") {
                let (code, after) = escape.split_once('}').unwrap();
                text.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
                rest = after;
            } else if first == '«' && rest.chars().nth(1).is_some_and(|next| next.is_ascii_digit()) {
                let (run, after) = rest['«'.len_utf8()..].split_once('»').unwrap();
                let (count, name) = run.split_once(' ').unwrap();
                let character = match name {
                    "spaces" => " ",
                    "tabs" => "\t",
                    _ => "\n",
                };
                text.push_str(&character.repeat(count.parse().unwrap()));
                rest = if character == "\n" { after.strip_prefix('\n').unwrap() } else { after };
            } else {
                rest = &rest[first.len_utf8()..];
                match first {
                    '·' => text.push(' '),
                    '⏎' => {}
                    _ => text.push(first),
                }
            }
        }
        text
    }

    proptest! {
        #[test]
        fn what_is_shown_can_be_read_back_so_that_no_two_commands_look_the_same(text in tricky()) {
            let shown = visible(&text);
            prop_assert_eq!(read_back(&shown), text);
            let is_plain = ["  ", "\n\n", "\t", "\r", "\u{200b}"].iter().all(|hidden| !shown.contains(hidden));
            prop_assert!(is_plain, "{:?}", shown);
        }
    }
}
