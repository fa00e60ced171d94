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

#[cfg(test)]
mod tests {
    use super::*;
    use switchboard_a2a::Role;

    fn read(address: &Address, message: &str, request: &str) -> Result<RoutingHints, Error> {
        let metadata = |json: &str| serde_json::from_str::<Option<Metadata>>(json).unwrap();
        let message = Message { metadata: metadata(message), ..Message::text(Role::User, "hi") };
        RoutingHints::read(address, &message, metadata(request).as_ref())
    }

    #[test]
    fn the_message_comes_before_the_request_and_skill_before_skill_hint() {
        let skill = |message: &str, request: &str| read(&Address::Root, message, request).unwrap().skill;
        let one = r#"{"skillHint":"b","skill":"a"}"#;
        assert_eq!(skill(one, r#"{"skill":"c"}"#).as_deref(), Some("a"));
        assert_eq!(skill(r#"{"skillHint":"b"}"#, r#"{"skill":"c"}"#).as_deref(), Some("b"));
        assert_eq!(skill(r#"{"skill":""}"#, r#"{"skill":null,"skillHint":"d"}"#).as_deref(), Some("d"));
        assert_eq!(skill("null", "null"), None);
        let both = read(&Address::Root, r#"{"profile":"fast"}"#, r#"{"profile":"slow","targets":"x"}"#).unwrap();
        assert_eq!((both.profile.as_deref(), both.targets), (Some("fast"), vec!["x".into()]));
    }

    #[test]
    fn targets_are_one_name_or_several_and_of_use_at_the_root_only() {
        let targets = |json: &str| read(&Address::Root, json, r#"{"targets":["z"]}"#).unwrap().targets;
        assert_eq!(targets(r#"{"targets":"x"}"#), ["x".into()]);
        assert_eq!(targets(r#"{"targets":["x","","y"]}"#), ["x".into(), "y".into()]);
        assert_eq!(targets(r#"{"targets":[]}"#), ["z".into()]);
        let own = read(&Address::Agent("x".into()), r#"{"targets":["y"]}"#, r#"{"targets":"z"}"#).unwrap();
        assert_eq!(own, RoutingHints::default());
    }

    #[test]
    fn a_value_of_the_wrong_type_is_named_wherever_it_stands() {
        for (message, request, expected) in [
            (r#"{"skill":7}"#, "null", "message.metadata.skill: must be a string, not 7"),
            (r#"{"skill":"a","skillHint":[]}"#, "null", "message.metadata.skillHint: must be a string, not []"),
            (r#"{"profile":"a"}"#, r#"{"profile":true}"#, "metadata.profile: must be a string, not true"),
            (
                r#"{"targets":["a",1]}"#,
                "null",
                r#"message.metadata.targets: must be the name of an agent or a list of names, not ["a",1]"#,
            ),
        ] {
            for address in [Address::Root, Address::Agent("x".into())] {
                assert_eq!(read(&address, message, request).unwrap_err().to_string(), expected);
            }
        }
        let long = format!(r#"{{"skill":["{}"]}}"#, "ö".repeat(1_000));
        assert!(read(&Address::Root, "null", &long).unwrap_err().to_string().ends_with("öö…"));
    }
}
