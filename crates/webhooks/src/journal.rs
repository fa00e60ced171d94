//! What happens to webhooks, as lines of the journal for those who follow the feed: `webhook.paused.HOST`,
//! `webhook.resumed.HOST` and `webhook.dead.HOST`. Of an address only the origin is told: the rest may hold secrets.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use switchboard_engine::store::feed::{JournalLine, topic_segment};
use switchboard_engine::store::hub::HubStore;
use switchboard_engine::store::webhooks::WebhookRow;

use crate::Webhooks;
use crate::outbox::Outbox;

/// Where it is told.
#[derive(Clone)]
pub(crate) struct Journal {
    store: Arc<dyn HubStore>,
    /// Takes the secrets out of a line: what is wrong with a receiver may be its own words.
    redact: fn(&mut Value),
}

/// What has happened.
#[derive(Clone, Copy)]
pub(crate) enum Happened {
    Paused,
    Resumed,
    /// A delivery is given up.
    Dead,
}

impl Webhooks {
    /// Writes what happens to webhooks into the journal of a store, without what a function redacts.
    #[must_use]
    pub fn with_journal(self, journal: Arc<dyn HubStore>, redact: fn(&mut Value)) -> Self {
        // It is set once, before anything is delivered.
        let _ = self.outbox.journal.set(Journal { store: journal, redact });
        self
    }
}

impl Outbox {
    /// Tells of an endpoint, which has the webhooks of many.
    pub(crate) fn tell_of_endpoint(&self, happened: Happened, endpoint: &str, more: Value) {
        let mut payload = json!({ "endpoint": endpoint });
        if let (Some(payload), Value::Object(more)) = (payload.as_object_mut(), more) {
            payload.extend(more);
        }
        self.tell(happened, endpoint, None, payload);
    }

    /// Tells of one webhook.
    pub(crate) fn tell_of_webhook(&self, happened: Happened, webhook: &WebhookRow, problem: Option<&str>) {
        let payload = json!({
            "endpoint": webhook.endpoint,
            "webhook": webhook.key.0,
            "agent": webhook.agent.as_str(),
            "problem": problem,
        });
        self.tell(happened, &webhook.endpoint, Some(webhook), payload);
    }

    fn tell(&self, happened: Happened, endpoint: &str, webhook: Option<&WebhookRow>, mut payload: Value) {
        let Some(Journal { store, redact }) = self.journal.get().cloned() else { return };
        redact(&mut payload);
        let line = JournalLine {
            at: self.now(),
            owner: webhook.map(|webhook| webhook.owner.clone()),
            task: webhook.map(|webhook| webhook.task.clone()),
            topic: format!("webhook.{}.{}", happened.word(), host(endpoint)),
            payload: Bytes::from(payload.to_string()),
        };
        self.engine.spawn(async move {
            if let Err(error) = store.journal(vec![line]).await {
                tracing::warn!(%error, "what happened to a webhook could not be written to the journal");
            }
        });
    }
}

impl Happened {
    fn word(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::Dead => "dead",
        }
    }
}

/// The host of an origin as one word of a topic.
fn host(endpoint: &str) -> String {
    let authority = endpoint.split_once("://").map_or(endpoint, |(_, authority)| authority);
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let host = authority.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(authority, |(host, _)| host);
    topic_segment(host)
}
