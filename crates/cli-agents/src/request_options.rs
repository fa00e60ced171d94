//! The options of a request, from its metadata: `repo`, `model`, `effort`. The message's come before the request's.

use switchboard_a2a::Metadata;
use switchboard_engine::Turn;

use super::routing::{Difficulty, Workers};
use super::sessions::ConversationRecord;
use super::settings::{Settings, Worker};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RequestOptions {
    pub(super) repo: Option<String>,
    pub(super) model: Option<String>,
    pub(super) effort: Option<String>,
}

impl RequestOptions {
    /// Reads a turn's metadata.
    pub(super) fn read(turn: &Turn, settings: &Settings) -> Result<Self, String> {
        let places = [turn.message.metadata.as_ref(), turn.metadata.as_ref()];
        let [repo, model, effort] = ["repo", "model", "effort"].map(|key| text(&places, key));
        let options = Self { repo: repo?, model: model?, effort: effort? };
        if let Workers::One(worker) = &settings.workers {
            options.allowed(worker, None)?;
        }
        Ok(options)
    }

    /// Whether the worker takes these options. Which worker it is may depend on the conversation.
    fn allowed(&self, worker: &Worker, profile: Option<Difficulty>) -> Result<(), String> {
        among(self.model.as_deref(), "model", &worker.models, profile)?;
        among(self.effort.as_deref(), "effort", &worker.efforts, profile)
    }

    /// Whether the chosen worker takes these options in the state of its conversation.
    pub(super) fn fit(
        &self,
        worker: &Worker,
        profile: Option<Difficulty>,
        past: Option<&ConversationRecord>,
    ) -> Result<(), String> {
        self.allowed(worker, profile)?;
        let Some(past) = past.filter(|past| self.goes_on(worker, past)) else { return Ok(()) };
        let told = worker.adapter.retold();
        let other_model = self.model.is_some() && self.model != past.metadata.model;
        let refused = [("model", other_model && !told.model), ("effort", self.effort.is_some() && !told.effort)];
        match refused.into_iter().find(|(_, is_refused)| *is_refused) {
            Some((key, _)) => Err(format!(
                "metadata.{key}: {} keeps the {key} that a conversation began with: leave it out, or begin a new \
                 conversation",
                worker.adapter.about().title
            )),
            None => Ok(()),
        }
    }

    /// The model of the turn, as far as it is known before the program starts.
    pub(super) fn model_in_use(&self, worker: &Worker, past: Option<&ConversationRecord>) -> Option<String> {
        let kept = past.filter(|past| self.goes_on(worker, past) && !worker.adapter.retold().model);
        match kept {
            Some(past) => past.metadata.model.clone(),
            None => self.model.clone().or_else(|| worker.model.clone()),
        }
    }

    /// Whether the session is resumed.
    fn goes_on(&self, worker: &Worker, past: &ConversationRecord) -> bool {
        let metadata = &past.metadata;
        metadata.cli == worker.name() && metadata.session_id.is_some() && worker.adapter.about().capabilities.resume
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

fn among(value: Option<&str>, key: &str, allowed: &[String], profile: Option<Difficulty>) -> Result<(), String> {
    let Some(value) = value.filter(|value| !allowed.iter().any(|allowed| allowed == value)) else { return Ok(()) };
    let profile = profile.map(Difficulty::name);
    let who = profile.map_or_else(|| "this agent".to_owned(), |name| format!("profile {name} of this agent"));
    if allowed.is_empty() {
        return Err(format!("metadata.{key}: {who} does not let requests choose the {key}; leave it out"));
    }
    let of_profile = profile.map(|_| format!(", which {who} takes")).unwrap_or_default();
    Err(format!("metadata.{key}: {value:?} is not one of {}{of_profile}", allowed.join(", ")))
}
