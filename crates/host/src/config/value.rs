//! What a setting's type must be able to do: be read from one node of a file or from a variable's text.
//! The plain types live here; those with rules of their own (time spans, sizes, addresses) have a file each.

use std::path::PathBuf;

use serde::Serialize;

use crate::config::document::Content;
use crate::config::problem::Mismatch;
use crate::config::suggestion;

/// A type that a key may have.
pub trait Value: Sized + Serialize {
    /// Reads it, or says what is wrong and what would be right.
    fn from_content(content: &Content) -> Result<Self, Mismatch>;
}

/// A type that is written as one scalar.
pub trait Scalar: Sized {
    /// What a right value looks like, as the end of "write …".
    const WRITE: &'static str;

    /// Reads it from its text.
    fn from_text(text: &str) -> Result<Self, Mismatch>;

    /// What is wrong with a text, as the end of a sentence about it, and what a right one looks like.
    fn mismatch(text: &str, wrong: &str) -> Mismatch {
        Mismatch::new(format!("\"{text}\" {wrong}"), format!("write {}", Self::WRITE))
    }
}

impl<T: Scalar + Serialize> Value for T {
    fn from_content(content: &Content) -> Result<Self, Mismatch> {
        match content {
            Content::Text(text) => T::from_text(text.trim()),
            other => Err(Mismatch::new(other.kind(), format!("write {}", T::WRITE))),
        }
    }
}

impl<T: Scalar + Serialize> Value for Option<T> {
    fn from_content(content: &Content) -> Result<Self, Mismatch> {
        match content {
            Content::Empty => Ok(None),
            other => T::from_content(other).map(Some),
        }
    }
}

impl<T: Scalar + Serialize> Value for Vec<T> {
    fn from_content(content: &Content) -> Result<Self, Mismatch> {
        match content {
            Content::List(items) => items
                .iter()
                .filter(|item| item.content != Content::Reported)
                .map(|item| T::from_content(&item.content))
                .collect(),
            // An environment variable has no lists; commas do there what brackets do in a file.
            Content::Text(text) => {
                text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(T::from_text).collect()
            }
            other => Err(Mismatch::new(other.kind(), format!("write a list in brackets, each item {}", T::WRITE))),
        }
    }
}

/// Reads a whole number with a unit; nothing if it is too large. The error is the end of a sentence about the text.
pub(super) fn quantity(
    text: &str,
    units: &[(&str, u64)],
    no_number: &'static str,
) -> Result<Option<u64>, &'static str> {
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(no_number);
    }
    if unit.is_empty() {
        return Err("has no unit");
    }
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err("has a unit that does not exist");
    };
    Ok(number.parse::<u64>().ok().and_then(|number| number.checked_mul(*factor)))
}

/// Implements [`Scalar`] for a setting that is one of a few words.
#[doc(hidden)]
#[macro_export]
macro_rules! word_setting {
    ($setting:ident: $first:literal => $one:ident $(, $word:literal => $other:ident)* or $last:literal => $end:ident) => {
        impl $crate::config::value::Scalar for $setting {
            const WRITE: &'static str = concat!($first, $(", ", $word,)* " or ", $last);

            fn from_text(text: &str) -> Result<Self, $crate::config::problem::Mismatch> {
                let words = [($first, Self::$one), $(($word, Self::$other),)* ($last, Self::$end)];
                $crate::config::value::choice(text, &words)
            }
        }
    };
}

/// Reads one of a few words.
pub fn choice<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, Mismatch> {
    if let Some((_, value)) = choices.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
    let right = match suggestion::nearest(text, words.iter().copied()) {
        Some(word) => format!("did you mean {word}? (one of {})", words.join(", ")),
        None => format!("the choices are {}", words.join(", ")),
    };
    Err(Mismatch::new(format!("\"{text}\" is not one of its values"), right))
}

impl Scalar for bool {
    const WRITE: &'static str = "true or false";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        text.parse().map_err(|_| Self::mismatch(text, "is neither true nor false"))
    }
}

impl Scalar for u32 {
    const WRITE: &'static str = "a whole number, such as 3";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        text.parse().map_err(|_| Self::mismatch(text, "is not a whole number"))
    }
}

impl Scalar for String {
    const WRITE: &'static str = "text";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        if text.is_empty() {
            return Err(Mismatch::new("is empty", "write some text, or remove the key"));
        }
        Ok(text.to_owned())
    }
}

impl Scalar for PathBuf {
    const WRITE: &'static str = "a path";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        if text.is_empty() || text.contains('\0') {
            return Err(Mismatch::new(format!("{text:?} is not a path"), "write a path, such as .switchboard"));
        }
        Ok(Self::from(text))
    }
}

/// Implements `Serialize` for settings that are shown as they are written.
macro_rules! serialize_as_text {
    ($($setting:ident),+) => {
        $(impl serde::Serialize for $setting {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        })+
    };
}
pub(super) use serialize_as_text;

/// Implements `JsonSchema` for a setting with its own text form. Unlike a derived schema it takes no description from
/// the doc comment, which would repeat the description of every key of that type.
#[cfg(feature = "schema")]
#[doc(hidden)]
#[macro_export]
macro_rules! json_schema_of {
    ($setting:ident, $schema:tt) => {
        impl schemars::JsonSchema for $setting {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($setting).into()
            }

            fn json_schema(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

#[cfg(not(feature = "schema"))]
#[doc(hidden)]
#[macro_export]
macro_rules! json_schema_of {
    ($setting:ident, $schema:tt) => {};
}
