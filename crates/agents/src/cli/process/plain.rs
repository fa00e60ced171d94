//! Text of a program for terminals, as plain text.

/// Without escape sequences and control characters. Line ends and tabs stay, a lone carriage return becomes a line end.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_until(&mut rest, is_final),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut rest),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => plain.push('\n'),
            '\n' | '\t' => plain.push(character),
            _ if character.is_control() => {}
            _ => plain.push(character),
        }
    }
    plain
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(rest: &mut Rest<'_>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            skip_until(rest, is_final);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            rest.next();
            skip_string(rest);
        }
        Some(' '..='/') => skip_until(rest, |character| ('0'..='~').contains(&character)),
        Some('0'..='~') => {
            rest.next();
        }
        _ => {}
    }
}

fn is_final(character: char) -> bool {
    ('@'..='~').contains(&character)
}

/// A sequence that is not ended ends with its line: it must not swallow what follows.
fn skip_until(rest: &mut Rest<'_>, is_last: impl Fn(char) -> bool) {
    while let Some(character) = rest.next_if(|character| !character.is_control()) {
        if is_last(character) {
            return;
        }
    }
}

fn skip_string(rest: &mut Rest<'_>) {
    while let Some(character) = rest.next_if(|character| *character != '\n') {
        match character {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' if rest.next_if_eq(&'\\').is_some() => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn only_text_is_left() {
        for (text, expected) in [
            ("\u{1b}[1;31merror\u{1b}[0m: no\tkey\r\nnext", "error: no\tkey\nnext"),
            ("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\b", "ab"),
            ("10%\r20%\r30%", "10%\n20%\n30%"),
            ("\u{1b}(Bx\u{1b}7y\u{1b}=z\u{9b}31mw", "xyzw"),
            ("a\u{1b}]never ended\nb\u{1b}[12", "a\nb"),
            ("\u{0}\u{8}\u{7f}ö🦀\u{1b}", "ö🦀"),
            ("\u{1b}[12\nkept", "\nkept"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }
}
