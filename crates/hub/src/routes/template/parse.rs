//! Reads templates. Every text either is one or is refused with what would be right.

use std::iter::Peekable;
use std::str::Chars;

use super::filter::{self, Filter};
use super::{Expression, MOST_FILTERS, MOST_VALUES, Operand, Piece};

/// What is quoted of a template in an error, in characters.
const QUOTED: usize = 40;

/// Why a text is no template.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{wrong}: {right}")]
pub(crate) struct TemplateError {
    pub(crate) wrong: String,
    pub(crate) right: String,
}

pub(super) fn template(text: &str, names: &[&str]) -> Result<Vec<Piece>, TemplateError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(begin) = ["{{", "{%", "{#"].iter().filter_map(|tag| rest.find(tag)).min() {
        let (before, tag) = rest.split_at(begin);
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        let Some(inside) = tag.strip_prefix("{{") else {
            return Err(error(format!("has {}", quoted(tag)), "write values as {{ }} alone"));
        };
        let mut expression = Reader { characters: inside.chars().peekable(), names };
        pieces.push(Piece::Value(expression.read().map_err(|problem| problem.at(tag))?));
        rest = &inside[inside.len() - expression.characters.collect::<String>().len()..];
        if pieces.iter().filter(|piece| matches!(piece, Piece::Value(_))).count() > MOST_VALUES {
            return Err(error("has too many values".to_owned(), &format!("at most {MOST_VALUES}")));
        }
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

/// Reads what stands between `{{` and `}}`.
struct Reader<'a> {
    characters: Peekable<Chars<'a>>,
    names: &'a [&'a str],
}

/// What is wrong within a pair of braces.
struct Problem {
    wrong: String,
    right: String,
}

impl Problem {
    fn new(wrong: impl Into<String>, right: impl Into<String>) -> Self {
        Self { wrong: wrong.into(), right: right.into() }
    }

    fn at(self, tag: &str) -> TemplateError {
        error(format!("{} in {}", self.wrong, quoted(tag)), &self.right)
    }
}

impl Reader<'_> {
    fn read(&mut self) -> Result<Expression, Problem> {
        let of = match self.skip() {
            Some('"' | '\'') => Operand::Literal(self.literal()?),
            _ => Operand::Path(self.path()?),
        };
        let mut filters = Vec::new();
        while self.skip() == Some('|') {
            self.characters.next();
            filters.push(self.filter()?);
            if filters.len() > MOST_FILTERS {
                return Err(Problem::new("has too many filters", format!("at most {MOST_FILTERS}")));
            }
        }
        match (self.skip(), self.characters.next(), self.characters.next()) {
            (_, Some('}'), Some('}')) => Ok(Expression { of, filters }),
            (None, ..) => Err(Problem::new("has no }}", "close it")),
            _ => Err(Problem::new("has more", "write one value and its filters")),
        }
    }

    /// The next character that is no space.
    fn skip(&mut self) -> Option<char> {
        while self.characters.next_if(|character| character.is_whitespace()).is_some() {}
        self.characters.peek().copied()
    }

    fn path(&mut self) -> Result<Vec<String>, Problem> {
        let first = self.word()?;
        if !self.names.contains(&first.as_str()) {
            return Err(Problem::new(format!("{first:?} is no value here"), format!("{} are", list(self.names))));
        }
        let mut path = vec![first];
        loop {
            match self.characters.peek() {
                Some('.') => {
                    self.characters.next();
                    path.push(self.word()?);
                }
                Some('[') => {
                    self.characters.next();
                    path.push(self.index()?);
                }
                _ => return Ok(path),
            }
        }
    }

    fn word(&mut self) -> Result<String, Problem> {
        let is_part = |character: &char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
        let mut word = String::new();
        while let Some(character) = self.characters.next_if(is_part) {
            word.push(character);
        }
        match word.is_empty() {
            true => Err(Problem::new("lacks a name", "write a name such as source.agent")),
            false => Ok(word),
        }
    }

    /// What stands between brackets.
    fn index(&mut self) -> Result<String, Problem> {
        let index = match self.skip() {
            Some('"' | '\'') => self.literal()?,
            Some(digit) if digit.is_ascii_digit() => self.word()?,
            _ => return Err(Problem::new("has brackets", "write a number or a quoted name in them")),
        };
        match (self.skip(), self.characters.next()) {
            (Some(']'), _) => Ok(index),
            _ => Err(Problem::new("has no ]", "close the brackets")),
        }
    }

    fn literal(&mut self) -> Result<String, Problem> {
        let quote = self.characters.next();
        let mut literal = String::new();
        loop {
            match self.characters.next() {
                None => return Err(Problem::new("has a quoted text", "it has to be closed")),
                Some('\\') => literal.extend(self.characters.next()),
                end if end == quote => return Ok(literal),
                Some(character) => literal.push(character),
            }
        }
    }

    fn filter(&mut self) -> Result<Filter, Problem> {
        self.skip();
        let name = self.word()?;
        let mut argument = None;
        if self.characters.next_if_eq(&'(').is_some() {
            argument = Some(match self.skip() {
                Some('"' | '\'') => self.literal()?,
                Some(')') => String::new(),
                _ => self.word()?,
            });
            if (self.skip(), self.characters.next()).0 != Some(')') {
                return Err(Problem::new("has no )", "close the parentheses"));
            }
        }
        filter::named(&name, argument.as_deref()).map_err(|right| match filter::NAMES.contains(&name.as_str()) {
            true => Problem::new(format!("{name} is not as it has to be"), right),
            false => Problem::new(format!("{name:?} is no filter"), right),
        })
    }
}

fn error(wrong: String, right: &str) -> TemplateError {
    TemplateError { wrong, right: right.to_owned() }
}

fn quoted(tag: &str) -> String {
    format!("{:?}", tag.chars().take(QUOTED).collect::<String>())
}

/// Names with commas between, and `and` before the last.
pub(super) fn list(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
