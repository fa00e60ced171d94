//! What a request wishes in its metadata: `repo`, `model`, `effort`. The message's come before the request's.

use switchboard_a2a::Metadata;
use switchboard_engine::Turn;

use super::settings::Settings;

/// What a request wishes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wishes {
    pub(super) repo: Option<String>,
    pub(super) model: Option<String>,
    pub(super) effort: Option<String>,
}

impl Wishes {
    /// Reads a turn's metadata.
    ///
    /// # Errors
    /// What is wrong, with what would be right, for the caller.
    pub(super) fn read(turn: &Turn, settings: &Settings) -> Result<Self, String> {
        let places = [turn.message.metadata.as_ref(), turn.metadata.as_ref()];
        let model = text(&places, "model")?;
        let effort = text(&places, "effort")?;
        among(model.as_deref(), "model", &settings.models)?;
        among(effort.as_deref(), "effort", &settings.efforts)?;
        Ok(Self { repo: text(&places, "repo")?, model, effort })
    }
}

/// A text under a key; an empty one and `null` are as good as none.
fn text(places: &[Option<&Metadata>], key: &str) -> Result<Option<String>, String> {
    for value in places.iter().flatten().filter_map(|metadata| metadata.get(key)) {
        if value.as_str() == "null" {
            continue;
        }
        match value.as_text() {
            Some(text) if text.is_empty() => {}
            Some(text) => return Ok(Some(text)),
            None => return Err(format!("metadata.{key} must be a text in quotes, or left out")),
        }
    }
    Ok(None)
}

fn among(wish: Option<&str>, key: &str, allowed: &[String]) -> Result<(), String> {
    match wish {
        Some(wish) if !allowed.iter().any(|allowed| allowed == wish) => Err(if allowed.is_empty() {
            format!("metadata.{key}: this agent does not let requests choose the {key}; leave it out")
        } else {
            format!("metadata.{key}: {wish:?} is not one of {}", allowed.join(", "))
        }),
        _ => Ok(()),
    }
}
