//! What a caller says in metadata about who should serve it and how: `skill`, `skillHint`, `targets`, `fanout`, `force`,
//! `profile`, `cooldownKey`.
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
use crate::routing_decision::RoutingDecision;

/// A caller's routing hints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutingHints {
    /// The id of the skill it wants.
    pub skill: Option<String>,
    /// The profile it wants to be served with; what that means is the agent's affair.
    pub profile: Option<String>,
    /// The agents that may serve it, best first. Only at the root: an agent's own address is its target.
    pub targets: Vec<AgentName>,
    /// That all targets are to serve it, and how many of them have to complete it. Only at the root.
    pub fanout: Option<String>,
    /// Whether a target serves it even without the skill. Only at the root.
    pub force: bool,
    /// What the work is about, for cooldowns: the caller's own key, else the pull request, issue or repository.
    pub cooldown_key: Option<String>,
}

/// Where a hint stands, for errors.
struct HintFields {
    skill: &'static str,
    skill_hint: &'static str,
    profile: &'static str,
    targets: &'static str,
    fanout: &'static str,
    force: &'static str,
    cooldown_key: &'static str,
}

const MESSAGE: HintFields = HintFields {
    skill: "message.metadata.skill",
    skill_hint: "message.metadata.skillHint",
    profile: "message.metadata.profile",
    targets: "message.metadata.targets",
    fanout: "message.metadata.fanout",
    force: "message.metadata.force",
    cooldown_key: "message.metadata.cooldownKey",
};
const REQUEST: HintFields = HintFields {
    skill: "metadata.skill",
    skill_hint: "metadata.skillHint",
    profile: "metadata.profile",
    targets: "metadata.targets",
    fanout: "metadata.fanout",
    force: "metadata.force",
    cooldown_key: "metadata.cooldownKey",
};

/// Keys that have been followed once a message has its agent. Names in them are of this server, and mean another agent or
/// none at the next one.
const FOLLOWED_KEYS: [&str; 5] = ["targets", "fanout", "force", "cooldownKey", "dispatcherAgent"];

/// The longest key of a cooldown.
const COOLDOWN_KEY_BYTES: usize = 256;

impl RoutingHints {
    /// Reads a message's metadata, then its request's.
    pub fn read(address: &Address, message: &Message, request: Option<&Metadata>) -> Result<Self, Error> {
        let mut hints = Self::default();
        for (metadata, fields) in [(message.metadata.as_ref(), MESSAGE), (request, REQUEST)] {
            let Some(metadata) = metadata else { continue };
            let skill = text(metadata.get("skill"), fields.skill)?;
            let hint = text(metadata.get("skillHint"), fields.skill_hint)?;
            let profile = text(metadata.get("profile"), fields.profile)?;
            hints.skill = hints.skill.or(skill).or(hint);
            hints.profile = hints.profile.or(profile);
            let targets = names(metadata.get("targets"), fields.targets)?;
            let at_root = *address == Address::Root;
            if at_root && hints.targets.is_empty() {
                hints.targets = targets;
            }
            // At an agent's own address these are the agent's, and may be of any type.
            if at_root {
                let fanout = text(metadata.get("fanout"), fields.fanout)?;
                hints.fanout = hints.fanout.or(fanout);
                hints.force |= flag(metadata.get("force"), fields.force)?;
                let key = text(metadata.get("cooldownKey"), fields.cooldown_key)?;
                if let Some(key) = &key
                    && key.len() > COOLDOWN_KEY_BYTES
                {
                    let problem = format!("must have at most {COOLDOWN_KEY_BYTES} bytes, not {}", key.len());
                    return Err(Error::Invalid { field: fields.cooldown_key, problem });
                }
                let about = || metadata.get("github").and_then(repository_key);
                hints.cooldown_key = hints.cooldown_key.or(key).or_else(about);
            }
        }
        Ok(hints)
    }

    /// Metadata without the hints that routing has followed; nothing if there is nothing else.
    pub fn without_followed(metadata: Option<Metadata>) -> Option<Metadata> {
        let mut metadata = metadata?;
        metadata.retain(|key| !FOLLOWED_KEYS.contains(&key));
        (!metadata.is_empty()).then_some(metadata)
    }

    /// Those of a message that its agent has got. Where the caller has named no skill, it is the one that routing has picked
    /// the agent by.
    pub fn seen_by(agent: &AgentName, received: &Received) -> Self {
        let address = Address::Agent(agent.clone());
        // What could not be read was not accepted.
        let mut hints = Self::read(&address, &received.message, received.metadata.as_ref()).unwrap_or_default();
        hints.skill = hints.skill.or_else(|| RoutingDecision::read(received.routing.as_ref()).skill);
        hints
    }
}

/// What a message about a repository is about: `owner/repo#number@sha`, as far as it says. It is no hint, so what cannot
/// be read is as good as nothing.
fn repository_key(value: &Json) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Github {
        owner: Option<String>,
        repo: String,
        number: Option<u64>,
        #[serde(alias = "headSha")]
        sha: Option<String>,
    }
    /// As many digits of a commit as people write.
    const SHA_DIGITS: usize = 7;
    let Github { owner, repo, number, sha } = value.read().ok()?;
    let mut key = owner.map_or_else(String::new, |owner| format!("{owner}/")) + &repo;
    if let Some(number) = number {
        key.push_str(&format!("#{number}"));
        let sha = sha.filter(|sha| !sha.is_empty());
        key.extend(sha.map(|sha| format!("@{}", sha.chars().take(SHA_DIGITS).collect::<String>())));
    }
    (!repo.is_empty() && key.len() <= COOLDOWN_KEY_BYTES).then_some(key)
}

fn flag(value: Option<&Json>, field: &'static str) -> Result<bool, Error> {
    let Some(value) = value else { return Ok(false) };
    let read = value.read::<Option<bool>>().map_err(|_| wrong(value, field, "true or false"))?;
    Ok(read.unwrap_or_default())
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
