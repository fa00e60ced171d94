//! Words in braces that stand for what a turn brings: `--model={model}`. Braces around anything else are braces.

use crate::adapters::order::{Order, OrderError, Session};

/// What a turn brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placeholder {
    Prompt,
    Model,
    Effort,
    Session,
    Directory,
}

/// A part of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Literal(String),
    Value(Placeholder),
}

const WORDS: &[(&str, Placeholder)] = &[
    ("prompt", Placeholder::Prompt),
    ("model", Placeholder::Model),
    ("effort", Placeholder::Effort),
    ("session", Placeholder::Session),
    ("cwd", Placeholder::Directory),
];

impl Placeholder {
    /// Whether a turn may come without it.
    pub(crate) fn is_optional(self) -> bool {
        matches!(self, Self::Model | Self::Effort)
    }

    pub(crate) fn word(self) -> &'static str {
        WORDS.iter().find(|(_, placeholder)| *placeholder == self).map_or("", |(word, _)| word)
    }

    /// What it stands for in a turn.
    pub(crate) fn value(self, order: &Order) -> Result<Option<&str>, OrderError> {
        Ok(match self {
            Self::Prompt => Some(&order.prompt),
            Self::Model => order.model.as_deref(),
            Self::Effort => order.effort.as_deref(),
            Self::Session => match &order.session {
                Session::New(session) | Session::Resume(session) => Some(session),
            },
            Self::Directory => {
                let unwritable = || OrderError::Unsupported("the working directory's name is no UTF-8".to_owned());
                Some(order.cwd.to_str().ok_or_else(unwritable)?)
            }
        })
    }
}

/// The parts of an argument, or the word in it that stands for nothing.
pub(crate) fn pieces(argument: &str) -> Result<Vec<Piece>, &str> {
    let (mut pieces, mut literal, mut rest) = (Vec::new(), String::new(), argument);
    while let Some((before, after)) = rest.split_once('{') {
        literal.push_str(before);
        match after.split_once('}') {
            Some((word, behind)) if !word.is_empty() && word.chars().all(|letter| letter.is_ascii_alphabetic()) => {
                let found = WORDS.iter().find(|(known, _)| *known == word);
                let (_, placeholder) = found.ok_or(word)?;
                if !literal.is_empty() {
                    pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                }
                pieces.push(Piece::Value(*placeholder));
                rest = behind;
            }
            _ => {
                literal.push('{');
                rest = after;
            }
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

/// All words in braces, for people.
pub(crate) fn known() -> String {
    let words: Vec<String> = WORDS.iter().map(|(word, _)| format!("{{{word}}}")).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_braces_are_found_and_other_braces_stay() {
        let literal = |text: &str| Piece::Literal(text.to_owned());
        assert_eq!(
            pieces("--text={prompt}!"),
            Ok(vec![literal("--text="), Piece::Value(Placeholder::Prompt), literal("!")])
        );
        assert_eq!(
            pieces("{model}{cwd}"),
            Ok(vec![Piece::Value(Placeholder::Model), Piece::Value(Placeholder::Directory)])
        );
        for plain in [r#"{"a":{"b":1}}"#, "{}", "{", "}", "{a b}", "", "ä{ö}"] {
            assert_eq!(pieces(plain), Ok(vec![literal(plain)]), "{plain}");
        }
        assert_eq!(pieces("{{prompt}}"), Ok(vec![literal("{"), Piece::Value(Placeholder::Prompt), literal("}")]));
        assert_eq!(pieces("{promt}"), Err("promt"));
    }
}
