//! The filters of templates. None makes more of a text than it is told to: chained, they would double it each time.

use serde_json::Value;

use super::parse::list;

/// The filters there are.
pub(super) const NAMES: [&str; 7] = ["default", "json", "lower", "slack", "trim", "truncate", "upper"];

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Filter {
    /// In place of an empty text.
    Default(String),
    /// As JSON; at the beginning, the value itself.
    Json,
    Lower,
    /// Without what Slack reads as a mention or a link.
    Slack,
    Trim,
    /// So many characters, and `…` if there were more.
    Truncate(usize),
    Upper,
}

/// The filter of a name, or what would be right.
pub(super) fn named(name: &str, argument: Option<&str>) -> Result<Filter, String> {
    let without = |filter| match argument {
        None => Ok(filter),
        Some(_) => Err(format!("{name} takes nothing")),
    };
    match name {
        "default" => {
            argument.map(|text| Filter::Default(text.to_owned())).ok_or("default takes a quoted text".to_owned())
        }
        "json" => without(Filter::Json),
        "lower" => without(Filter::Lower),
        "slack" => without(Filter::Slack),
        "trim" => without(Filter::Trim),
        "truncate" => {
            let count = argument.and_then(|count| count.parse().ok());
            count.map(Filter::Truncate).ok_or("truncate takes a number of characters, such as truncate(200)".to_owned())
        }
        "upper" => without(Filter::Upper),
        _ => Err(format!("{} are", list(&NAMES))),
    }
}

impl Filter {
    /// Applies it; of the text before and the one after so many bytes count.
    pub(super) fn apply(&self, mut text: String, most: usize) -> String {
        cut(&mut text, most);
        let mut applied = match self {
            Self::Default(other) if text.is_empty() => other.clone(),
            Self::Default(_) => text,
            Self::Json => Value::String(text).to_string(),
            Self::Lower => text.to_lowercase(),
            Self::Slack => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
            Self::Trim => text.trim().to_owned(),
            Self::Truncate(count) => match text.char_indices().nth(*count) {
                Some((at, _)) => format!("{}…", &text[..at]),
                None => text,
            },
            Self::Upper => text.to_uppercase(),
        };
        cut(&mut applied, most);
        applied
    }
}

/// Keeps one byte more than may be shown, so that it shows that the text was cut.
fn cut(text: &mut String, most: usize) {
    text.truncate(text.ceil_char_boundary(most.saturating_add(1)));
}
