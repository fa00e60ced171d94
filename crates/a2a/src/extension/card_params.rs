//! What a card says of its skills in the parameters of an extension: `params.skills.NAME`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::members::Members;
use crate::card::{AgentCard, AgentExtension};
use crate::{Json, Metadata};

/// The extension on a card, if the card has it.
pub(super) fn declared<'a>(card: &'a AgentCard, uri: &str) -> Option<&'a AgentExtension> {
    card.capabilities.extensions.iter().find(|extension| extension.uri == uri)
}

/// What each skill says, as far as `read` understands it.
pub(super) fn of_skills<T>(
    card: &AgentCard,
    uri: &str,
    read: impl Fn(&Members, &Json) -> Option<T>,
) -> BTreeMap<String, T> {
    let params = declared(card, uri).and_then(|extension| extension.params.as_ref());
    let skills = params.and_then(|params| params.get("skills")).and_then(|skills| skills.read::<Metadata>().ok());
    let Some(skills) = skills else { return BTreeMap::new() };
    let read = |(name, said): (&str, &Json)| Some((name.to_owned(), read(&Members::of(said)?, said)?));
    skills.iter().filter_map(read).collect()
}

/// The extension for a card, with what each skill says.
pub(super) fn extension(uri: &str, skills: &BTreeMap<String, impl Serialize>) -> AgentExtension {
    let mut params = Metadata::default();
    // Maps by name cannot fail to be JSON.
    if let Ok(skills) = Json::from_serialize(skills) {
        params.insert("skills", skills);
    }
    AgentExtension { uri: uri.to_owned(), params: Some(params), ..AgentExtension::default() }
}
