//! The webhook service for operators: list, retry, pause, resume, rotate secrets. It works with a running outbox, or on the
//! store alone while no server runs.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::clock::{Clock, later};
use switchboard_engine::store::StoreError;
use switchboard_engine::store::webhooks::{
    DeliveryKey, DeliveryRow, DeliveryState, WebhookFilter, WebhookKey, WebhookRoute, WebhookRow, WebhookState,
    WebhookStore, WebhookSummary,
};
use switchboard_engine::{AgentScope, CallerId};

use crate::Webhooks;
use crate::config::Config;
use crate::journal::Happened;
use crate::metric_definitions as metric;
use crate::outbox::Outbox;
use crate::signature::secrets;

const SHOWN_DELIVERIES: usize = 50;
/// Dead letters read at once.
const STEP: usize = 500;

/// Webhooks as operators work with them.
#[derive(Clone)]
pub struct WebhookService {
    store: Arc<dyn WebhookStore>,
    secret: [u8; 32],
    clock: Arc<dyn Clock>,
    /// Whose webhooks are there for it; others look like unknown ones.
    agents: AgentScope,
    /// The outbox, if this process delivers.
    running: Option<Arc<Outbox>>,
}

/// A webhook as operators see it. No secrets, and of its address only the endpoint: paths and queries may hold some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookView {
    pub webhook: i64,
    pub task_id: String,
    /// Its name within its task.
    pub id: String,
    pub caller: String,
    pub agent: String,
    /// The origin of its URL.
    pub endpoint: String,
    /// The protocol version it was set in.
    pub version: String,
    /// `active`, `paused`, `disabled` or `finished`.
    pub state: String,
    /// When the pause of its failing endpoint ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_paused_until: Option<Timestamp>,
    /// The number of the last event that is delivered, dead or unwanted.
    pub cursor: u64,
    /// Whether its task has events after the cursor.
    pub lags: bool,
    pub delivered: u64,
    /// How many are dead letters.
    pub dead: u64,
    /// When it was set, or set again after its end.
    pub created_at: Timestamp,
    /// Its next delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<DeliveryView>,
}

/// A delivery as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryView {
    pub delivery: i64,
    pub webhook: i64,
    /// Its task; absent below a webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Its endpoint; absent below a webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The last event in its body.
    pub event: String,
    /// A task state, or `artifact`.
    pub about: String,
    /// `pending`, `delivered` or `dead`.
    pub state: String,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is tried next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// When it was tried last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt_at: Option<Timestamp>,
    /// The HTTP status of the last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the last attempt took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u32>,
    /// Why it was not delivered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
}

/// The signing secrets of one caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretView {
    pub caller: String,
    /// Those in use, the newest first.
    pub secrets: Vec<String>,
    /// Until when the older ones are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_until: Option<Timestamp>,
}

impl Webhooks {
    /// Updates the gauges; called when metrics are read.
    pub async fn measure(&self) {
        let Ok(census) = self.outbox.store.outbox_census().await else { return };
        let age_ms = census.behind_since.map_or(0, |since| (self.clock().now().0 - since.0).max(0));
        metrics::gauge!(metric::BACKLOG).set(census.behind as f64);
        metrics::gauge!(metric::DEAD_LETTERS).set(census.dead as f64);
        metrics::gauge!(metric::OLDEST_SECONDS).set(age_ms as f64 / 1_000.0);
    }

    /// The operators' side of these webhooks.
    pub fn service(&self) -> WebhookService {
        WebhookService {
            store: Arc::clone(&self.outbox.store),
            secret: self.outbox.secret,
            clock: Arc::clone(self.clock()),
            agents: AgentScope::All,
            running: Some(Arc::clone(&self.outbox)),
        }
    }
}

impl WebhookService {
    /// For a store from which no process delivers.
    pub fn of_store(store: Arc<dyn WebhookStore>, clock: Arc<dyn Clock>) -> Self {
        Self { secret: store.secret(), store, clock, agents: AgentScope::All, running: None }
    }

    /// The same for an operator of some agents: the webhooks of their tasks.
    #[must_use]
    pub fn for_agents(self, agents: AgentScope) -> Self {
        Self { agents, ..self }
    }

    /// Webhooks after one of them, oldest first.
    pub async fn list(
        &self,
        task: Option<TaskId>,
        state: Option<WebhookState>,
        after: i64,
        max: usize,
    ) -> Result<Vec<WebhookView>, StoreError> {
        let mut found = Vec::new();
        let mut after = WebhookKey(after);
        while found.len() < max {
            let filter = WebhookFilter { task: task.clone(), state, after, max };
            let mut summaries = self.store.list_webhooks(filter).await?;
            let is_last = summaries.len() < max;
            if let Some(last) = summaries.last() {
                after = last.webhook.key;
            }
            summaries.retain(|summary| self.agents.covers(&summary.webhook.agent));
            found.extend(summaries.into_iter().map(|summary| self.view(summary)));
            if is_last {
                break;
            }
        }
        found.truncate(max);
        Ok(found)
    }

    /// One webhook and its newest deliveries, newest first.
    pub async fn show(&self, webhook: i64) -> Result<Option<(WebhookView, Vec<DeliveryView>)>, StoreError> {
        let Some(view) = self.find(webhook).await? else { return Ok(None) };
        let deliveries = self.store.deliveries(WebhookKey(webhook), SHOWN_DELIVERIES).await?;
        Ok(Some((view, deliveries.into_iter().map(|row| delivery(None, row)).collect())))
    }

    async fn find(&self, webhook: i64) -> Result<Option<WebhookView>, StoreError> {
        Ok(self.summary(webhook).await?.map(|summary| self.view(summary)))
    }

    async fn summary(&self, webhook: i64) -> Result<Option<WebhookSummary>, StoreError> {
        let Some(after) = webhook.checked_sub(1) else { return Ok(None) };
        let filter = WebhookFilter { task: None, state: None, after: WebhookKey(after), max: 1 };
        let mut found = self.store.list_webhooks(filter).await?;
        found.retain(|summary| summary.webhook.key.0 == webhook && self.agents.covers(&summary.webhook.agent));
        Ok(found.pop())
    }

    /// Dead letters after one of them, oldest first.
    pub async fn dead_letters(&self, after: i64, max: usize) -> Result<Vec<DeliveryView>, StoreError> {
        let mut found = Vec::new();
        let mut after = DeliveryKey(after);
        while found.len() < max {
            let mut letters = self.store.dead_letters(after, max).await?;
            let is_last = letters.len() < max;
            if let Some((_, last)) = letters.last() {
                after = last.key;
            }
            letters.retain(|(webhook, _)| self.agents.covers(&webhook.agent));
            found.extend(letters.into_iter().map(|(webhook, row)| delivery(Some(&webhook), row)));
            if is_last {
                break;
            }
        }
        found.truncate(max);
        Ok(found)
    }

    /// Sends a delivery once more; returns whether there is one that can be.
    pub async fn retry(&self, delivery: i64) -> Result<bool, StoreError> {
        let found = self.store.delivery(DeliveryKey(delivery)).await?;
        let Some((webhook, _)) = found.filter(|(webhook, _)| self.agents.covers(&webhook.agent)) else {
            return Ok(false);
        };
        let replayed = self.store.replay(DeliveryKey(delivery), self.clock.now()).await?;
        // Only a delivery that is sent once more tells whether its endpoint answers again.
        if replayed {
            self.try_now(&webhook);
        }
        Ok(replayed)
    }

    /// Sends all dead letters, or those of one task, once more; returns how many.
    pub async fn retry_dead(&self, task: Option<&TaskId>) -> Result<u64, StoreError> {
        let (mut after, mut count) = (DeliveryKey(0), 0);
        loop {
            let mut found = self.store.dead_letters(after, STEP).await?;
            let Some((_, last)) = found.last() else { break };
            after = last.key;
            found.retain(|(webhook, _)| {
                task.is_none_or(|task| *task == webhook.task) && self.agents.covers(&webhook.agent)
            });
            // Concurrently, for one group commit.
            let replays = found.iter().map(|(_, row)| self.store.replay(row.key, self.clock.now()));
            let replayed = try_join_all(replays).await?;
            for ((webhook, _), _) in found.iter().zip(replayed).filter(|(_, replayed)| *replayed) {
                count += 1;
                self.try_now(webhook);
            }
        }
        Ok(count)
    }

    /// Pauses a webhook; returns whether it was active.
    pub async fn pause(&self, webhook: i64) -> Result<bool, StoreError> {
        if self.find(webhook).await?.is_none() {
            return Ok(false);
        }
        let paused = self.store.set_webhook_state(WebhookKey(webhook), WebhookState::Paused, self.clock.now()).await?;
        if paused {
            self.tell(Happened::Paused, webhook).await?;
        }
        Ok(paused)
    }

    /// Resumes a paused or disabled webhook at its cursor; returns whether it was one.
    pub async fn resume(&self, webhook: i64) -> Result<bool, StoreError> {
        if self.find(webhook).await?.is_none() {
            return Ok(false);
        }
        let resumed = self.store.set_webhook_state(WebhookKey(webhook), WebhookState::Active, self.clock.now()).await?;
        if let Some(running) = &self.running {
            running.rescan();
        }
        if resumed {
            self.tell(Happened::Resumed, webhook).await?;
        }
        Ok(resumed)
    }

    /// Journals what an operator has done with a webhook.
    async fn tell(&self, happened: Happened, webhook: i64) -> Result<(), StoreError> {
        let Some(running) = &self.running else { return Ok(()) };
        if let Some(summary) = self.summary(webhook).await? {
            running.tell_of_webhook(happened, &summary.webhook, None);
        }
        Ok(())
    }

    /// The signing secrets of a caller.
    pub async fn secret(&self, caller: &CallerId) -> Result<SecretView, StoreError> {
        let (signing, now) = (self.store.signing().await?, self.clock.now());
        let secrets = secrets(self.secret, &signing, caller, now);
        let previous_until = signing.previous.iter().map(|(_, until)| *until).filter(|until| now < *until).max();
        let secrets = secrets.iter().map(|secret| secret.text()).collect();
        Ok(SecretView { caller: caller.to_string(), secrets, previous_until })
    }

    /// Rotates the signing secret of every caller; deliveries are signed with the old one too until the returned time.
    pub async fn rotate_secrets(&self, overlap: Duration) -> Result<Timestamp, StoreError> {
        let now = self.clock.now();
        let previous_until = later(now, overlap);
        let signing = self.store.rotate_signing(now, previous_until).await?;
        if let Some(running) = &self.running {
            *running.signing.lock() = signing;
        }
        Ok(previous_until)
    }

    /// A replay does not wait for the end of a pause.
    fn try_now(&self, webhook: &WebhookRow) {
        if let Some(running) = &self.running {
            let WebhookRow { key, owner, endpoint, .. } = webhook;
            running.try_now(WebhookRoute { webhook: *key, owner: owner.clone(), endpoint: endpoint.clone() });
        }
    }

    fn view(&self, summary: WebhookSummary) -> WebhookView {
        let WebhookSummary { webhook, pending, delivered, dead, lags } = summary;
        let paused = self.running.as_ref().and_then(|running| {
            let until = running.paused.lock().get(webhook.endpoint.as_str()).copied();
            until.filter(|until| *until > running.now())
        });
        let config = Config::stored(&webhook).ok();
        WebhookView {
            webhook: webhook.key.0,
            task_id: webhook.task.to_string(),
            id: webhook.id,
            caller: webhook.owner.to_string(),
            agent: webhook.agent.to_string(),
            endpoint: webhook.endpoint,
            version: config.map_or("unreadable", |config| config.version().as_str()).to_owned(),
            state: state_name(webhook.state).to_owned(),
            endpoint_paused_until: paused,
            cursor: webhook.cursor.0,
            lags,
            delivered,
            dead,
            created_at: webhook.began_at,
            pending: pending.map(|row| delivery(None, row)),
        }
    }
}

fn state_name(state: WebhookState) -> &'static str {
    match state {
        WebhookState::Active => "active",
        WebhookState::Paused => "paused",
        WebhookState::Disabled => "disabled",
        WebhookState::Finished => "finished",
    }
}

/// The state with a name.
pub fn state_named(name: &str) -> Option<WebhookState> {
    let states = [WebhookState::Active, WebhookState::Paused, WebhookState::Disabled, WebhookState::Finished];
    states.into_iter().find(|state| state_name(*state) == name)
}

fn delivery(webhook: Option<&WebhookRow>, row: DeliveryRow) -> DeliveryView {
    let last = row.last_attempt;
    DeliveryView {
        delivery: row.key.0,
        webhook: row.webhook.0,
        task_id: webhook.map(|webhook| webhook.task.to_string()),
        endpoint: webhook.map(|webhook| webhook.endpoint.clone()),
        event: row.last.to_string(),
        about: row.about,
        state: match row.state {
            DeliveryState::Pending => "pending",
            DeliveryState::Delivered => "delivered",
            DeliveryState::Dead => "dead",
        }
        .to_owned(),
        attempts: row.attempts,
        next_attempt_at: (row.state == DeliveryState::Pending).then_some(row.due_at),
        created_at: row.created_at,
        last_attempt_at: last.as_ref().map(|last| last.at),
        status: last.as_ref().and_then(|last| last.status),
        duration_ms: last.as_ref().map(|last| last.duration_ms),
        problem: last.map(|last| last.problem).unwrap_or_default(),
    }
}
