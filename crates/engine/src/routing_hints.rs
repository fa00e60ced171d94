//! What a caller says in metadata about who should serve it and how: `skill`, `skillHint`, `targets`, `profile`.
//!
//! Each may stand in the message's metadata or in the request's. The message's come before the request's, and in the
//! same place `skill` comes before `skillHint`. An empty text, an empty list and `null` are as good as nothing; a value
//! of another type is refused with the name of its field, also where a better one would have won.
//!
//! Only the root address routes by them; at an agent's own address they are the agent's to read.

use switchboard_a2a::{Json, Message, Metadata};

use crate::directory::Address;
use crate::error::Error;
use crate::event::Received;
use crate::ids::AgentName;

/// A caller's routing hints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutingHints {
    /// The id of the skill it wants.
    pub skill: Option<String>,
    /// The profile it wants to be served with; what that means is the agent's affair.
    pub profile: Option<String>,
    /// The agents that may serve it, best first. Only at the root: an agent's own address is its target.
    pub targets: Vec<AgentName>,
}

/// Where hints stand, for errors: `skill`, `skillHint`, `profile` and `targets` of the message, then of the request.
const MESSAGE: [&str; 4] =
    ["message.metadata.skill", "message.metadata.skillHint", "message.metadata.profile", "message.metadata.targets"];
const REQUEST: [&str; 4] = ["metadata.skill", "metadata.skillHint", "metadata.profile", "metadata.targets"];

impl RoutingHints {
    /// Reads a message's metadata, then its request's.
    pub fn read(address: &Address, message: &Message, request: Option<&Metadata>) -> Result<Self, Error> {
        let mut hints = Self::default();
        for (metadata, fields) in [(message.metadata.as_ref(), MESSAGE), (request, REQUEST)] {
            let Some(metadata) = metadata else { continue };
            let [skill_field, hint_field, profile_field, targets_field] = fields;
            let skill = text(metadata.get("skill"), skill_field)?;
            let hint = text(metadata.get("skillHint"), hint_field)?;
            let profile = text(metadata.get("profile"), profile_field)?;
            hints.skill = hints.skill.or(skill).or(hint);
            hints.profile = hints.profile.or(profile);
            let targets = names(metadata.get("targets"), targets_field)?;
            if *address == Address::Root && hints.targets.is_empty() {
                hints.targets = targets;
            }
        }
        Ok(hints)
    }

    /// Those of a message that its agent has got.
    pub(crate) fn seen_by(agent: &AgentName, received: &Received) -> Self {
        let address = Address::Agent(agent.clone());
        // What could not be read was not accepted.
        Self::read(&address, &received.message, received.metadata.as_ref()).unwrap_or_default()
    }
}

fn text(value: Option<&Json>, field: &'static str) -> Result<Option<String>, Error> {
    let Some(value) = value else { return Ok(None) };
    let read = value.read::<Option<String>>().map_err(|_| wrong(value, field, "a string"))?;
    Ok(read.filter(|text| !text.is_empty()))
}

fn names(value: Option<&Json>, field: &'static str) -> Result<Vec<AgentName>, Error> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let names = match value.read::<Option<String>>() {
        Ok(one) => one.into_iter().collect(),
        Err(_) => {
            let expected = "the name of an agent or a list of names";
            value.read::<Vec<String>>().map_err(|_| wrong(value, field, expected))?
        }
    };
    Ok(names.into_iter().filter(|name| !name.is_empty()).map(AgentName::from).collect())
}

fn wrong(value: &Json, field: &'static str, expected: &str) -> Error {
    const SHOWN: usize = 60;
    let mut shown: String = value.as_str().chars().take(SHOWN).collect();
    if shown.len() < value.as_str().len() {
        shown.push('…');
    }
    Error::Invalid { field, problem: format!("must be {expected}, not {shown}") }
}
