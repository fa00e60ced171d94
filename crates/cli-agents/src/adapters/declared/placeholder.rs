//! Placeholders for values of a turn: `--model={model}`. Braces around anything but a word are literal.

use crate::adapters::order::{Order, OrderError, Session};

/// A value of a turn.
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
pub(crate) enum Segment {
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

/// Splits an argument; an unknown placeholder is the error.
pub(crate) fn segments(argument: &str) -> Result<Vec<Segment>, &str> {
    let (mut segments, mut literal, mut rest) = (Vec::new(), String::new(), argument);
    while let Some((before, after)) = rest.split_once('{') {
        literal.push_str(before);
        match after.split_once('}') {
            Some((word, behind)) if !word.is_empty() && word.chars().all(|letter| letter.is_ascii_alphabetic()) => {
                let found = WORDS.iter().find(|(known, _)| *known == word);
                let (_, placeholder) = found.ok_or(word)?;
                if !literal.is_empty() {
                    segments.push(Segment::Literal(std::mem::take(&mut literal)));
                }
                segments.push(Segment::Value(*placeholder));
                rest = behind;
            }
            _ => {
                literal.push('{');
                rest = after;
            }
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() || segments.is_empty() {
        segments.push(Segment::Literal(literal));
    }
    Ok(segments)
}

/// All placeholders, for people.
pub(crate) fn known() -> String {
    let words: Vec<String> = WORDS.iter().map(|(word, _)| format!("{{{word}}}")).collect();
    words.join(", ")
}
