//! Puts an end to what was waited for long enough: ended tasks are held for webhooks that lag behind for a while only,
//! and dead letters are kept for a while only.

use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::Timestamp;
use switchboard_engine::Error;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::webhooks::{Attempt, Head, NewDelivery, OutboxWrite, WebhookKey, WebhookState};

use crate::Options;
use crate::config::Config;
use crate::deliver::is_terminal;
use crate::outbox::Inner;
use crate::register::unavailable;
use crate::render::{Next, Renderer};

/// How often it looks.
const PERIOD: Duration = Duration::from_secs(60);
/// Why a delivery is given up that was never refused.
const LATE: &str = "not delivered within webhooks.holdTasks of the end of its task";
const CROWDED: &str = "its task had to go, because there is more than store.retention allows";
/// How many webhooks are taken at once.
const STEP: usize = 200;

impl Inner {
    /// Looks from time to time until the kernel stops.
    pub(crate) async fn tidy(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.engine.clock().sleep(PERIOD) => {}
                () = self.engine.closing().cancelled() => return,
            }
            match self.tidy_once().await {
                Ok(()) => {}
                Err(StoreError::Closed) => return,
                Err(error) => tracing::warn!(%error, "old deliveries could not be put away"),
            }
        }
    }

    pub(crate) async fn tidy_once(&self) -> Result<(), StoreError> {
        let ended_before = self.before(self.options.hold_tasks);
        loop {
            let mut overdue = self.store.overdue_webhooks(ended_before, STEP).await?;
            let late = overdue.len();
            overdue.extend(self.store.held_beyond_caps(self.engine.retention(), STEP).await?);
            let (all, mut given_up) = (overdue.len(), 0);
            for (index, webhook) in overdue.into_iter().enumerate() {
                let problem = if index < late { LATE } else { CROWDED };
                match self.give_up(webhook, problem).await {
                    Ok(()) => given_up += 1,
                    // One that cannot be read must not hold up the others.
                    Err(error) => tracing::warn!(%error, webhook = webhook.0, "a webhook could not be given up"),
                }
            }
            if all < STEP || given_up < all {
                break;
            }
        }
        let Options { dead_letter_age, dead_letters, dead_letter_bytes, .. } = self.options;
        self.store.prune_dead_letters(self.before(dead_letter_age), dead_letters, dead_letter_bytes).await?;
        Ok(())
    }

    fn before(&self, age: Duration) -> Timestamp {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.now().0.saturating_sub(age))
    }

    /// Everything that a webhook was not told becomes a dead letter, with its body.
    async fn give_up(&self, key: WebhookKey, problem: &str) -> Result<(), Error> {
        let Some(Head { webhook, delivery, task_last, .. }) = self.store.head(key).await.map_err(unavailable)? else {
            return Ok(());
        };
        if !matches!(webhook.state, WebhookState::Active | WebhookState::Paused) {
            return Ok(());
        }
        let config = Config::stored(&webhook).map_err(|error| unavailable(StoreError::Failed(error.to_string())))?;
        let log = self.engine.log(&webhook.task, webhook.task_key);
        let mut renderer = Renderer::new(log, &**self.engine.directory(), &webhook, &config);
        let mut cursor = webhook.cursor;
        let mut ended = false;
        if let Some(delivery) = delivery {
            renderer.has_begun();
            let attempt = Attempt { at: self.now(), duration_ms: 0, status: None, problem: problem.to_owned() };
            cursor = delivery.last.seq;
            ended = is_terminal(&delivery.about);
            let body = match &delivery.body {
                Some(_) => None,
                None => Some(renderer.again(&delivery).await?),
            };
            let write = OutboxWrite::Dead { delivery: delivery.key, body, attempt, finished: ended };
            self.store.outbox(write).await.map_err(unavailable)?;
        }
        while !ended {
            let Next::Delivery(made) = renderer.next(cursor, self.now()).await? else { break };
            (cursor, ended) = (made.delivery.last.seq, made.is_last);
            let delivery = NewDelivery { body: Some(made.body), ..made.delivery };
            let write = OutboxWrite::Abandon { webhook: key, delivery, problem: problem.to_owned() };
            self.store.outbox(write).await.map_err(unavailable)?;
        }
        self.store.outbox(OutboxWrite::Finished { webhook: key, cursor: task_last }).await.map_err(unavailable)?;
        tracing::warn!(task = %webhook.task, webhook = key.0, "a webhook was not served in time; its deliveries are dead letters");
        Ok(())
    }
}
