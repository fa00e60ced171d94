//! Webhook commands of operators: requests, replies and their handler.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::CallerId;
use switchboard_webhooks::{DeliveryView, WebhookService, WebhookView, state_named};

use crate::control::protocol::{ControlError, value};
use crate::keys::KeyService;

/// The caller of a server that runs without keys.
pub const LOCAL_CALLER: &str = "local";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum WebhookRequest {
    List {
        task: Option<String>,
        state: Option<String>,
        after: i64,
        limit: usize,
    },
    Show {
        webhook: i64,
    },
    Retry {
        delivery: i64,
    },
    RetryDead {
        /// Of which task; without it all.
        task: Option<String>,
    },
    Pause {
        webhook: i64,
    },
    Resume {
        webhook: i64,
    },
    DeadLetters {
        after: i64,
        limit: usize,
    },
    Secret {
        caller: String,
    },
    RotateSecret {
        /// For how long the old one is used too.
        overlap_ms: u64,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WebhookPage {
    /// Oldest first.
    pub webhooks: Vec<WebhookView>,
    /// After which one the next page begins, if there is one.
    pub next: Option<i64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WebhookDetails {
    pub webhook: WebhookView,
    /// Its deliveries, newest first.
    #[serde(default)]
    pub deliveries: Vec<DeliveryView>,
}

/// A webhook that was paused or resumed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChangedWebhook {
    pub webhook: WebhookView,
    /// What keeps a resumed one from going on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<DeliveryHold>,
}

/// Why nothing is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeliveryHold {
    #[serde(rename = "no server runs on this data")]
    NoServer,
    #[serde(rename = "webhooks.enabled is false")]
    Disabled,
}

impl DeliveryHold {
    /// When deliveries go on, as the end of a sentence after `as soon as`.
    pub fn until(self) -> &'static str {
        match self {
            Self::NoServer => "a server runs on this data",
            Self::Disabled => "webhooks are enabled: set webhooks.enabled to true and start the server again",
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterPage {
    /// Oldest first.
    pub dead_letters: Vec<DeliveryView>,
    /// After which one the next page begins, if there is one.
    pub next: Option<i64>,
}

/// How many deliveries are sent once more.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RetryReport {
    pub retried: u64,
    /// What keeps them from being sent now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<DeliveryHold>,
}

/// Secrets that were rotated.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RotatedSecret {
    /// Until when the old ones are used too.
    pub previous_until: Timestamp,
}

pub(super) async fn handle(
    service: &WebhookService,
    keys: &KeyService,
    waits: Option<DeliveryHold>,
    request: WebhookRequest,
) -> Result<Value, ControlError> {
    match request {
        WebhookRequest::List { task, state, after, limit } => {
            list(service, task, state, after, limit).await.and_then(value)
        }
        WebhookRequest::Show { webhook } => show(service, webhook).await.and_then(value),
        WebhookRequest::Retry { delivery } => retry(service, delivery, waits).await.and_then(value),
        WebhookRequest::RetryDead { task } => {
            let task = task.map(TaskId::from);
            let retried = service.retry_dead(task.as_ref()).await.map_err(ControlError::new)?;
            value(RetryReport { retried, waits: waits.filter(|_| retried > 0) })
        }
        WebhookRequest::Pause { webhook } => {
            let changed = service.pause(webhook).await.map_err(ControlError::new)?;
            let webhook = changed_webhook(service, webhook, changed, "paused").await?;
            value(ChangedWebhook { webhook, waits: None })
        }
        WebhookRequest::Resume { webhook } => {
            let changed = service.resume(webhook).await.map_err(ControlError::new)?;
            let webhook = changed_webhook(service, webhook, changed, "active").await?;
            value(ChangedWebhook { webhook, waits })
        }
        WebhookRequest::DeadLetters { after, limit } => {
            let mut dead_letters =
                service.dead_letters(after, limit.saturating_add(1)).await.map_err(ControlError::new)?;
            let next = next_page(&mut dead_letters, limit, |delivery| delivery.delivery);
            value(DeadLetterPage { dead_letters, next })
        }
        WebhookRequest::Secret { caller } => {
            check_caller(keys, &caller).await?;
            service.secret(&CallerId::from(caller.as_str())).await.map_err(ControlError::new).and_then(value)
        }
        WebhookRequest::RotateSecret { overlap_ms } => {
            let rotated = service.rotate_secrets(Duration::from_millis(overlap_ms)).await;
            rotated.map_err(ControlError::new).and_then(|previous_until| value(RotatedSecret { previous_until }))
        }
    }
}

async fn list(
    service: &WebhookService,
    task: Option<String>,
    state: Option<String>,
    after: i64,
    limit: usize,
) -> Result<WebhookPage, ControlError> {
    let unknown = |name: &str| ControlError::new(format!("{name:?} is no state of a webhook"));
    let state = match &state {
        Some(name) => Some(state_named(name).ok_or_else(|| unknown(name))?),
        None => None,
    };
    let found = service.list(task.map(TaskId::from), state, after, limit.saturating_add(1)).await;
    let mut webhooks = found.map_err(ControlError::new)?;
    let next = next_page(&mut webhooks, limit, |webhook| webhook.webhook);
    Ok(WebhookPage { webhooks, next })
}

/// Cuts a page to its length; returns the cursor of the next one.
fn next_page<T>(rows: &mut Vec<T>, limit: usize, number: impl Fn(&T) -> i64) -> Option<i64> {
    if rows.len() <= limit {
        return None;
    }
    rows.truncate(limit);
    rows.last().map(number)
}

async fn show(service: &WebhookService, webhook: i64) -> Result<WebhookDetails, ControlError> {
    let found = service.show(webhook).await.map_err(ControlError::new)?;
    let unknown = || {
        ControlError::new(format!("there is no webhook {webhook}"))
            .with_next("switchboard webhooks list shows them all")
    };
    found.map(|(webhook, deliveries)| WebhookDetails { webhook, deliveries }).ok_or_else(unknown)
}

async fn retry(
    service: &WebhookService,
    delivery: i64,
    waits: Option<DeliveryHold>,
) -> Result<RetryReport, ControlError> {
    match service.retry(delivery).await.map_err(ControlError::new)? {
        true => Ok(RetryReport { retried: 1, waits }),
        false => Err(ControlError::new(format!("there is no delivery {delivery} that was delivered or given up"))
            .with_next("switchboard webhooks dead-letters lists those that were given up, switchboard webhooks show NUMBER those of a webhook")),
    }
}

/// The webhook after a change, or why it did not change.
async fn changed_webhook(
    service: &WebhookService,
    number: i64,
    changed: bool,
    wanted: &str,
) -> Result<WebhookView, ControlError> {
    let webhook = show(service, number).await?.webhook;
    if changed {
        return Ok(webhook);
    }
    let because = match webhook.state.as_str() {
        state if state == wanted => return Err(ControlError::new(format!("webhook {number} is already {wanted}"))),
        "finished" => "its task has ended and it was told of everything",
        "disabled" => "its endpoint answered 410 and gets nothing any more",
        _ => "it has just changed, try again",
    };
    Err(ControlError::new(format!("webhook {number} is {}: {because}", webhook.state)))
}

/// Secrets are derived for any name, so a mistyped caller has to be refused here.
async fn check_caller(keys: &KeyService, caller: &str) -> Result<(), ControlError> {
    let keys = keys.list().await.map_err(ControlError::new)?;
    if caller == LOCAL_CALLER || keys.iter().any(|key| key.id == caller) {
        return Ok(());
    }
    let next =
        format!("switchboard keys list shows the ids of all keys; callers of a server without keys are {LOCAL_CALLER}");
    Err(ControlError::new(format!("there is no caller {caller:?}")).with_next(next))
}
