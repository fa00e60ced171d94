//! What is known of a remote agent beside its configuration: its client, its circuit breaker, whether it can be reached,
//! and its card. A card that changes more than it may is held until an administrator accepts it; until then calls follow
//! the one before.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use switchboard_a2a::card::AgentCard;
use switchboard_client::Client;
use switchboard_fleet::config::remote_agent::RemoteAgent;
use switchboard_fleet::config::remote_serving::CardChanges;
use tokio_util::sync::CancellationToken;

use super::breaker::CircuitBreaker;
use super::card_policies::{CardSkills, declared};
use super::reachability::Reachability;

/// What is known of a remote agent.
pub struct RemoteState {
    pub definition: RemoteAgent,
    pub client: Client,
    pub breaker: Arc<CircuitBreaker>,
    pub observed: Mutex<Observed>,
    /// Ends its probes.
    pub(super) removed: CancellationToken,
    /// No reader is told of its breaker any more. A new definition of the same address keeps the breaker.
    pub(super) breaker_retired: CancellationToken,
}

impl RemoteState {
    /// Has calls follow the card that counts. Where changes are held that is the accepted one: what the agent shows by now
    /// may name other hosts, and a probe, or a message after a restart, has fetched that.
    pub(crate) fn follow_accepted_card(&self) {
        if self.definition.serving.card_changes != CardChanges::Hold {
            return;
        }
        // Locked until it is pinned, so that of two cards the later one stays.
        let observed = self.observed.lock();
        if let Some(accepted) = &observed.card {
            self.client.pin_card(Arc::clone(&accepted.card), accepted.json.clone());
        }
    }
}

/// What probes have shown.
#[derive(Default)]
pub struct Observed {
    pub reachability: Reachability,
    /// The last good card.
    pub card: Option<KnownCard>,
    /// A card that waits to be accepted.
    pub held: Option<KnownCard>,
    /// What counts of what its cards have asked for their skills, once there is one.
    pub(crate) counted: Option<CardSkills>,
}

/// A card and its entity tag.
#[derive(Clone, Debug)]
pub struct KnownCard {
    pub card: Arc<AgentCard>,
    pub json: Bytes,
    /// Of its bytes: what an administrator accepts is what was shown.
    pub etag: String,
    /// What was stored of earlier cards that asked for more.
    pub(crate) counted: Option<CardSkills>,
}

/// What a fetched card has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardChange {
    None,
    /// It counts from now on.
    Taken,
    /// It waits to be accepted.
    Held,
}

impl KnownCard {
    /// A card from its bytes.
    pub fn new(card: AgentCard, json: Bytes) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, &json);
        let etag = digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self { card: Arc::new(card), json, etag, counted: None }
    }
}

impl Observed {
    /// Takes a card that was fetched.
    pub fn take(&mut self, found: KnownCard, changes: CardChanges) -> CardChange {
        match &self.card {
            Some(known) if known.etag == found.etag => {
                self.held = None;
                CardChange::None
            }
            Some(known) if changes == CardChanges::Hold && is_material(&known.card, &found.card) => {
                let is_new = self.held.as_ref().is_none_or(|held| held.etag != found.etag);
                self.held = Some(found);
                if is_new { CardChange::Held } else { CardChange::None }
            }
            _ => {
                self.held = None;
                self.card = Some(found);
                CardChange::Taken
            }
        }
    }

    /// Accepts the card that is held, or what the newest card asks for less, if it is the one that was shown.
    pub fn accept(&mut self, etag: &str) -> Option<KnownCard> {
        let accepted = match self.held.take_if(|held| held.etag == etag) {
            Some(held) => held,
            None if self.held.is_none() && self.lowered().is_some() => {
                self.card.clone().filter(|known| known.etag == etag)?
            }
            None => return None,
        };
        self.card = Some(accepted.clone());
        self.counted = Some(declared(&accepted.card));
        Some(accepted)
    }
}

/// Whether skills, hosts or security differ.
fn is_material(before: &AgentCard, after: &AgentCard) -> bool {
    before.skills != after.skills
        || before.supported_interfaces != after.supported_interfaces
        || before.security_schemes != after.security_schemes
        || before.security_requirements != after.security_requirements
}
