//! What cards ask for their skills. A card may ask for more at once, also one that is held otherwise. What asks for less, and a
//! skill that is new and asks for less than the agent's strictest, waits until an administrator accepts it: an agent could open
//! its own gates else. What counts outlives a restart.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use switchboard_a2a::card::AgentCard;
use switchboard_a2a::extension::blast::{Radius, declared_radii};
use switchboard_a2a::extension::hitl_mode::{Mode, declared_policies};
use switchboard_engine::AgentName;
use switchboard_host::config::inbox::Inbox;

use super::Registry;
use super::remote_state::{Observed, RemoteState};
use crate::gate::{CardSkill, ReviewPolicies};

/// The kind of a registration that holds what counts of earlier cards, where the last one asks for less.
pub(super) const CARD_POLICIES: &str = "card-policies";

/// What counts for each skill of the cards of an agent.
pub(crate) type CardSkills = BTreeMap<String, CardSkill>;

/// One skill as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredSkill {
    mode: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    radius: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    veto_ttl_ms: Option<u64>,
}

/// The longest veto that a card may ask for. No question waits longer by default (`tasks.parkedExpiry`).
const LONGEST_VETO: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Skills that are kept of the cards of an agent, whatever new ones each of them has. Others pass its strictest gate, as
/// skills do that it does not have.
const MOST_SKILLS: usize = 1_000;

fn veto_ttl(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds).min(LONGEST_VETO)
}

/// What a card asks for each of its skills; nothing is asked for one that it has no words about.
pub(super) fn declared(card: &AgentCard) -> CardSkills {
    let (policies, radii) = (declared_policies(card), declared_radii(card));
    let listed = card.skills.iter().map(|skill| skill.id.as_str());
    let named = policies.keys().chain(radii.keys()).map(String::as_str);
    let of = |name: &str| {
        let policy = policies.get(name);
        CardSkill {
            mode: policy.map_or(Mode::Autonomous, |policy| policy.mode),
            radius: radii.get(name).copied(),
            veto_ttl: policy.and_then(|policy| policy.veto_ttl_ms).map(veto_ttl),
        }
    };
    listed.chain(named).map(|name| (name.to_owned(), of(name))).collect()
}

impl RemoteState {
    /// How far people take part in its skills, as its cards count.
    pub(crate) fn policies(&self, inbox: &Inbox) -> ReviewPolicies {
        let counted = self.observed.lock().counted.clone().unwrap_or_default();
        self.policies_with(&counted, inbox)
    }

    /// The same with what a card asks for that waits to be accepted.
    pub(crate) fn lowered_policies(&self, inbox: &Inbox) -> Option<ReviewPolicies> {
        let shown = self.observed.lock().lowered()?;
        Some(self.policies_with(&shown, inbox))
    }

    fn policies_with(&self, counted: &CardSkills, inbox: &Inbox) -> ReviewPolicies {
        let serving = &self.definition.serving;
        let configured = serving.skills.iter().map(|skill| skill.name.as_str());
        ReviewPolicies::new(&serving.policy, configured, counted, inbox)
    }

    /// Takes in what a card asks for, as far as it asks for more. Says whether anything else counts now.
    pub(super) fn count_card(&self, observed: &mut Observed, card: &AgentCard, inbox: &Inbox) -> bool {
        let shown = declared(card);
        let Some(before) = observed.counted.clone() else {
            observed.counted = Some(shown);
            return true;
        };
        let mut counted = before.clone();
        for (name, known) in &mut counted {
            if let Some(shown) = shown.get(name) {
                known.mode = known.mode.max(shown.mode);
                known.radius = known.radius.max(shown.radius);
                known.veto_ttl = known.veto_ttl.max(shown.veto_ttl);
            }
        }
        // A new skill was held as strictly as the strictest: whoever named it might have meant that.
        let strictest = self.policies_with(&counted, inbox).strictest_mode();
        let with_new = self.policies_with(&shown, inbox);
        let policy = &self.definition.serving.policy;
        let is_as_strict =
            |name: &str| strictest < Mode::Veto || policy.says_mode_of(name) || with_new.mode_of(name) >= strictest;
        let new = shown.into_iter().filter(|(name, _)| !before.contains_key(name) && is_as_strict(name));
        let room = MOST_SKILLS.saturating_sub(counted.len());
        counted.extend(new.take(room));
        let has_changed = counted != before;
        observed.counted = Some(counted);
        has_changed
    }
}

impl Observed {
    /// The etag of what waits to be accepted: a card, or that the newest one asks for less.
    pub fn held_etag(&self) -> Option<String> {
        let lowering = || self.card.as_ref().filter(|_| self.lowered().is_some());
        self.held.as_ref().or_else(lowering).map(|known| known.etag.clone())
    }

    /// What the newest card asks for, if that is less than what counts.
    pub(super) fn lowered(&self) -> Option<CardSkills> {
        let newest = self.held.as_ref().or(self.card.as_ref())?;
        let shown = declared(&newest.card);
        (self.counted.as_ref()? != &shown).then_some(shown)
    }
}

impl Registry {
    /// Stores what counts of earlier cards where the last good one asks for less, and deletes it where it does not. Says
    /// whether that is stored: the card may be stored only then, or a restart would take it at its word.
    pub(super) async fn store_counted(&self, name: &AgentName, remote: &RemoteState) -> bool {
        let counted = {
            let observed = remote.observed.lock();
            let of_card = observed.card.as_ref().map(|known| declared(&known.card));
            observed.counted.clone().filter(|counted| of_card.as_ref() != Some(counted))
        };
        self.put_counted(name, counted).await
    }

    /// Deletes what counts of the cards of an agent that is gone or elsewhere.
    pub(super) async fn forget_counted(&self, name: &AgentName) {
        self.put_counted(name, None).await;
    }

    async fn put_counted(&self, name: &AgentName, counted: Option<CardSkills>) -> bool {
        let is_stored = self.stored_counted.lock().contains(name);
        if counted.is_none() && !is_stored {
            return true;
        }
        let body = counted.as_ref().map(|counted| Bytes::from(encode(counted)));
        if let Err(error) = self.put_row(self.own_row(CARD_POLICIES, name.as_str(), 0, body)).await {
            tracing::warn!(agent = %name, %error, "what its cards have asked of reviewers could not be stored");
            return false;
        }
        let mut stored = self.stored_counted.lock();
        match counted {
            Some(_) => stored.insert(name.clone()),
            None => stored.remove(name),
        };
        true
    }
}

fn encode(counted: &CardSkills) -> Vec<u8> {
    let stored = counted.iter().map(|(name, skill)| {
        let veto_ttl_ms = skill.veto_ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        let radius = skill.radius.map(|radius| radius.name().to_owned());
        (name, StoredSkill { mode: skill.mode.name().to_owned(), radius, veto_ttl_ms })
    });
    serde_json::to_vec(&stored.collect::<BTreeMap<_, _>>()).unwrap_or_default()
}

/// What counts, from its row.
pub(super) fn decode(body: &[u8]) -> Option<CardSkills> {
    let stored: BTreeMap<String, StoredSkill> = serde_json::from_slice(body).ok()?;
    let read = |(name, stored): (String, StoredSkill)| {
        let radius = match stored.radius {
            Some(radius) => Some(Radius::from_name(&radius)?),
            None => None,
        };
        let veto_ttl = stored.veto_ttl_ms.map(veto_ttl);
        Some((name, CardSkill { mode: Mode::from_name(&stored.mode)?, radius, veto_ttl }))
    };
    stored.into_iter().map(read).collect()
}
