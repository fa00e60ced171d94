//! Probes remote agents: a conditional request for the card is heartbeat and refresh in one. A changed card changes what is
//! served; an agent that cannot be reached keeps the last good one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use switchboard_client::{CallContext, Client, ClientError, FoundCard};
use switchboard_egress::jitter;
use switchboard_engine::AgentName;
use switchboard_fleet::config::remote_agent::RemoteAgent;

use super::Registry;
use super::apply::Definitions;
use super::breaker::{BreakerState, RequestOutcome, RequestSource};
use super::reachability::{LastProbe, ProbeSettings, ReachabilityChange};
use super::remote_state::{CardChange, KnownCard, RemoteState};
use super::roster::RosterEntry;
use crate::audit::Actor;
use crate::metric_definitions as metric;

/// The soonest that a trial is tried again which did not leave this process.
const TRIAL_RETRY: Duration = Duration::from_secs(1);
/// The kind of a registration that holds a last good card.
pub(super) const CARD: &str = "card";

impl Registry {
    pub(super) fn probe_settings(&self) -> ProbeSettings {
        let probe = &self.parts.config.hub.probe;
        ProbeSettings {
            every: probe.every.duration(),
            while_down: probe.while_down.duration(),
            down_after: u32::try_from(probe.down_after.get()).unwrap_or(u32::MAX),
            timeout: probe.timeout.duration(),
        }
    }

    /// Probes an agent until it is removed; nothing for one that is not elsewhere, or before the kernel has started.
    pub(super) fn start_probes(self: &Arc<Self>, entry: &Arc<RosterEntry>, first_in: Duration) {
        let (Some(engine), Some(remote)) = (self.engine.read().clone(), entry.remote.clone()) else { return };
        // One that only commands call is left alone.
        if !remote.definition.serving.serve {
            return;
        }
        let (registry, name) = (Arc::clone(self), entry.name.clone());
        let closing = engine.closing().clone();
        engine.spawn(async move {
            let probes =
                remote.removed.clone().run_until_cancelled_owned(registry.probe_forever(name, remote, first_in));
            closing.run_until_cancelled(probes).await;
        });
    }

    async fn probe_forever(self: Arc<Self>, name: AgentName, remote: Arc<RemoteState>, first_in: Duration) {
        if !first_in.is_zero() {
            self.parts.clock.sleep(first_in).await;
        }
        loop {
            self.probe(&name, &remote).await;
            let settings = self.probe_settings();
            let usual = {
                let observed = remote.observed.lock();
                observed.reachability.next_in(&settings, observed.card.is_some(), jitter())
            };
            // A breaker that is due for its trial is closed by a probe, because no task is sent to it.
            let wait = remote.breaker.reopens_in().map_or(usual, |trial| usual.min(trial.max(TRIAL_RETRY)));
            self.parts.clock.sleep(wait).await;
        }
    }

    /// Probes an agent once, and tells what has changed.
    pub(super) async fn probe(&self, name: &AgentName, remote: &Arc<RemoteState>) {
        let settings = self.probe_settings();
        let began = self.parts.clock.monotonic();
        let permit = remote.breaker.allow().ok();
        let found = fetch_card(&remote.client, settings.timeout).await;
        let outcome = RequestOutcome::of(&found);
        if let Some(permit) = permit {
            permit.record(RequestSource::Probe, outcome);
        }
        // A lack of connections here says nothing of the agent. One that cannot be called as it is configured is not reached.
        let is_limit = matches!(found, Err(ClientError::Unreachable { .. } | ClientError::NoCard(_)));
        if outcome == RequestOutcome::NotSent && is_limit {
            tracing::debug!(agent = %name, "too many connections are open to look at it");
            return;
        }
        let latency = self.parts.clock.monotonic().saturating_sub(began);
        let error = found.as_ref().err().map(ToString::to_string);
        let is_reached = outcome == RequestOutcome::Answered;
        let probe = LastProbe { at: self.parts.clock.now(), latency, is_reached, error: error.clone() };
        // Held until all of it is told: a definition that replaces this one waits, and takes over what was seen.
        let definitions = self.definitions.lock().await;
        if !self.is_served(name, remote) {
            return;
        }
        let inbox = &self.parts.config.hub.inbox;
        let mut counts_more = false;
        let (change, card_change) = {
            let mut observed = remote.observed.lock();
            let change = observed.reachability.record(probe, &settings);
            let known = found.ok().map(|found| KnownCard::new(found.card.clone(), found.json.clone()));
            let changes = remote.definition.serving.card_changes;
            if let Some(known) = &known {
                counts_more = remote.count_card(&mut observed, &known.card, inbox);
            }
            (change, known.map_or(CardChange::None, |known| observed.take(known, changes)))
        };
        let mut lines = Vec::new();
        if let Some(change) = change {
            let word = match change {
                ReachabilityChange::Up => "up",
                ReachabilityChange::Down => "down",
            };
            tracing::info!(agent = %name, error, "the agent is {word}");
            lines.push(self.line(format!("hub.agent.{word}.{name}"), self.of_node(name)));
        }
        if card_change != CardChange::None {
            let payload = json!({ "agent": name.as_str(), "held": card_change == CardChange::Held });
            lines.push(self.line(format!("hub.agent.card_changed.{name}"), payload));
        }
        if card_change == CardChange::Taken {
            self.card_taken(&definitions, name, remote).await;
        } else if counts_more {
            self.serve_as_counted(name, remote);
            self.store_counted(name, remote).await;
        }
        let has_news = !lines.is_empty();
        self.journal.add(lines);
        drop(definitions);
        if has_news {
            self.flush_journal().await;
        }
    }

    /// Whether this is what is known of an agent now, and not of an earlier definition of its name.
    fn is_served(&self, name: &AgentName, remote: &Arc<RemoteState>) -> bool {
        let roster = self.roster();
        let now = roster.entry(name.as_str()).and_then(|entry| entry.remote.as_ref());
        now.is_some_and(|now| Arc::ptr_eq(now, remote))
    }

    /// Probes an agent now; nothing for one that is not elsewhere.
    pub async fn refresh(&self, name: &str) {
        let remote = self.roster().entry(name).and_then(|entry| entry.remote.clone());
        if let Some(remote) = remote {
            self.probe(&AgentName::from(name), &remote).await;
        }
    }

    /// Looks for an agent that is not registered.
    pub async fn look_at(&self, agent: &RemoteAgent) -> Result<Arc<FoundCard>, String> {
        let client = self.clients.permitted(agent, &self.variables.permit()).map_err(|error| error.to_string())?;
        fetch_card(&client, self.probe_settings().timeout).await.map_err(|error| error.to_string())
    }

    /// Accepts the card that is held, if it is the one that was shown.
    pub async fn accept(&self, actor: &Actor, name: &str, etag: &str) -> bool {
        let remote = self.roster().entry(name).and_then(|entry| entry.remote.clone());
        let Some(remote) = remote else { return false };
        let (agent, definitions) = (AgentName::from(name), self.definitions.lock().await);
        // A card that was held for an earlier definition is not this one's.
        if !self.is_served(&agent, &remote) || remote.observed.lock().accept(etag).is_none() {
            return false;
        }
        self.card_taken(&definitions, &agent, &remote).await;
        let line = self.audit("agents.accept", actor, name, None, Some(&json!({ "etag": etag })));
        self.journal.add(vec![line]);
        drop(definitions);
        self.flush_journal().await;
        true
    }

    /// Calls and serves an agent as its card now says, and stores the card, under the lock that its definition changes
    /// under.
    async fn card_taken(&self, _: &Definitions, name: &AgentName, remote: &Arc<RemoteState>) {
        remote.follow_accepted_card();
        let Some(known) = remote.observed.lock().card.clone() else { return };
        self.serve_as_counted(name, remote);
        if self.store_counted(name, remote).await {
            self.store_card(name, Some(known.json)).await;
        }
    }

    fn serve_as_counted(&self, name: &AgentName, remote: &Arc<RemoteState>) {
        let hosted = self.roster().entry(name.as_str()).and_then(|entry| entry.hosted.clone());
        if let Some(hosted) = hosted {
            hosted.replace((self.serve_remote)(remote));
        }
    }

    /// Stores the last good card of an agent, for a restart that does not reach it; or deletes it.
    pub(super) async fn store_card(&self, name: &AgentName, card: Option<Bytes>) {
        let most = self.parts.config.hub.registrations.card.bytes();
        let bytes = card.as_ref().map_or(0, Bytes::len);
        if u64::try_from(bytes).is_ok_and(|bytes| bytes > most) {
            tracing::warn!(agent = %name, bytes, "its card is too large to be stored");
            return;
        }
        // Its version is not kept: the store says it.
        if let Err(error) = self.put_row(self.own_row(CARD, name.as_str(), 0, card)).await {
            tracing::warn!(agent = %name, %error, "its card could not be stored");
        }
    }

    /// What this node has noticed of an agent: others may see it differently.
    fn of_node(&self, agent: &AgentName) -> serde_json::Value {
        let node = self.engine.read().as_ref().map(|engine| engine.node_id().to_owned());
        json!({ "agent": agent.as_str(), "node": node })
    }

    /// No reader is told of a breaker any more whose agent is gone or elsewhere now; that it was open is over.
    pub(super) fn retire_breaker(self: &Arc<Self>, gone: &RosterEntry, by: Option<&Arc<RemoteState>>) {
        let Some(remote) = &gone.remote else { return };
        if by.is_some_and(|by| Arc::ptr_eq(&by.breaker, &remote.breaker)) {
            return;
        }
        remote.breaker_retired.cancel();
        if remote.breaker.state() != BreakerState::Closed {
            self.breaker_changed(&gone.name, BreakerState::Closed);
        }
    }

    /// Tells that a breaker has opened or closed.
    pub(super) fn breaker_changed(self: &Arc<Self>, agent: &AgentName, state: BreakerState) {
        let word = match state {
            BreakerState::Open => "opened",
            BreakerState::Closed => "closed",
            BreakerState::HalfOpen => return,
        };
        let is_open = if state == BreakerState::Open { 1.0 } else { 0.0 };
        metrics::gauge!(metric::BREAKER_OPEN, "agent" => agent.to_string()).set(is_open);
        tracing::info!(%agent, "its circuit breaker has {word}");
        let line = self.line(format!("hub.breaker.{word}.{agent}"), self.of_node(agent));
        let engine = self.engine.read().clone();
        if let Some(engine) = engine {
            // Now, so that it stands before what happens next.
            self.journal.add(vec![line]);
            let journal = Arc::clone(&self.journal);
            engine.spawn(async move { journal.flush().await });
        }
    }
}

/// Fetches the card of an agent, if it has changed. The time is kept inside the client: cut off from outside, the probe
/// would not know what the places of the card have said.
pub(super) async fn fetch_card(client: &Client, timeout: Duration) -> Result<Arc<FoundCard>, ClientError> {
    client.probe_card(&CallContext::default(), timeout).await
}
