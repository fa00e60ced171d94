//! Media types: whether an agent can read what it is sent and write what the caller can read. A skill may have its own in
//! place of the agent's.

use switchboard_a2a::Json;

use crate::directory::Address;
use crate::error::Error;
use crate::ids::AgentName;
use crate::manifest::{Manifest, Skill};
use crate::routing_decision::RoutingDecision;
use crate::routing_hints::RoutingHints;
use crate::submit::IncomingMessage;

/// The media types of a skill, one way.
type OfSkill = fn(&Skill) -> &[String];

/// Refuses a message in a type the agent does not read, or a caller that reads none of the agent's types.
pub(crate) fn check(
    manifest: &Manifest,
    agent: &AgentName,
    send: &IncomingMessage,
    decision: Option<&Json>,
) -> Result<(), Error> {
    let says_none = send.accepted_output_modes.is_empty();
    if says_none && send.message.parts.iter().all(|part| part.media_type.is_none()) {
        return Ok(());
    }
    let skill = skill(manifest, agent, send, decision);
    let reads = || media_types(manifest, skill.as_ref(), &manifest.input_modes, |skill| &skill.input_modes);
    for part in &send.message.parts {
        let Some(media_type) = &part.media_type else { continue };
        if !reads().any(|mode| matches(mode, media_type)) {
            let known = joined(reads());
            return Err(Error::ContentType(format!("{} does not read {media_type}; it reads {known}", manifest.name)));
        }
    }
    let writes = || media_types(manifest, skill.as_ref(), &manifest.output_modes, |skill| &skill.output_modes);
    let is_written = |accepted: &String| writes().any(|mode| matches(accepted, mode) || matches(mode, accepted));
    if !says_none && !send.accepted_output_modes.iter().any(is_written) {
        let (known, asked) = (joined(writes()), send.accepted_output_modes.join(", "));
        return Err(Error::ContentType(format!("{} does not write {asked}; it writes {known}", manifest.name)));
    }
    Ok(())
}

/// The skill that a message asks for, where some skill has media types of its own.
fn skill<'a>(
    manifest: &'a Manifest,
    agent: &AgentName,
    send: &IncomingMessage,
    decision: Option<&Json>,
) -> Option<&'a Skill> {
    if manifest.skills.iter().all(|skill| skill.input_modes.is_empty() && skill.output_modes.is_empty()) {
        return None;
    }
    let address = Address::Agent(agent.clone());
    // What cannot be read is refused elsewhere.
    let hints = RoutingHints::read(&address, &send.message, send.metadata.as_ref()).unwrap_or_default();
    let asked = hints.skill.or_else(|| RoutingDecision::read(decision).skill)?;
    manifest.skills.iter().find(|skill| skill.id == asked)
}

/// Those that count for a skill: its own, else the agent's. Which skill a message is for that names none is the agent's to
/// find out, so those of all of them count.
fn media_types<'a>(
    manifest: &'a Manifest,
    skill: Option<&'a &'a Skill>,
    of_agent: &'a [String],
    of_skill: OfSkill,
) -> impl Iterator<Item = &'a String> {
    let own = skill.map(|skill| of_skill(skill)).filter(|own| !own.is_empty());
    let of_agent = if own.is_some() { &[] } else { of_agent };
    let of_all: &[Skill] = if skill.is_some() { &[] } else { &manifest.skills };
    own.unwrap_or_default().iter().chain(of_agent).chain(of_all.iter().flat_map(of_skill))
}

fn joined<'a>(modes: impl Iterator<Item = &'a String>) -> String {
    let mut known: Vec<&str> = Vec::new();
    for mode in modes {
        if !known.contains(&mode.as_str()) {
            known.push(mode);
        }
    }
    known.join(", ")
}

/// Whether a pattern (`text/plain`, `text/*`, `*/*`) covers a media type; parameters and case do not count.
fn matches(pattern: &str, media_type: &str) -> bool {
    let essence = |text: &str| text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (pattern, media_type) = (essence(pattern), essence(media_type));
    if pattern == "*/*" || pattern == "*" || pattern == media_type || pattern == "text" && media_type == "text/plain" {
        return true;
    }
    match (pattern.split_once('/'), media_type.split_once('/')) {
        (Some((kind, "*")), Some((other, _))) => kind == other,
        _ => false,
    }
}
