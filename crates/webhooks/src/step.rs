//! One step of one webhook: what is next is made and stored, sent, and what came of it is stored. A delivery is stored
//! before it is sent for the first time, so that whatever happens next, it is sent again the same.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use switchboard_a2a::Timestamp;
use switchboard_egress::{SendError, Target};
use switchboard_engine::Error;
use switchboard_engine::clock::later;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::webhooks::{
    Attempt, DeliveryRow, Head, NewDelivery, OutboxWrite, Route, WebhookKey, WebhookRow, WebhookState,
};
use tokio::sync::SemaphorePermit;

use crate::body_budget::{BodyPermit, Reservation};
use crate::config::Config;
use crate::endpoints::{Health, Started};
use crate::metric_definitions as metric;
use crate::outbox::{Outbox, StepResult};
use crate::outcome::AttemptOutcome;
use crate::render::{Form, Next, Renderer};
use crate::request::DeliveryRequest;
use crate::retention::DEAD_BYTES;
use crate::retry_policy::{is_due, jitter, next_attempt};
use crate::signature::secrets;

/// How much of an answer is read before the connection is given up rather than used again.
const ANSWER_BYTES: usize = 16 << 10;
/// So much of a log that a webhook does not want is looked at again before it is put behind.
const SKIPPED_BYTES: usize = 64 << 10;
/// What an attempt gets beyond the moment the server begins to stop.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Why a step was not taken.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Log(#[from] Error),
    #[error("the configuration cannot be read: {0}")]
    Config(#[from] serde_json::Error),
    #[error("the request cannot be made: {0}")]
    Request(#[from] http::Error),
    /// There is no room for a body of so many bytes now.
    #[error("there is no room for {0} bytes")]
    OverBudget(usize),
    /// Nobody was called, for a reason that is ours: no attempt is used up.
    #[error("as many connections are open as may be")]
    Crowded,
    /// The delivery is stored and will be sent by the next process.
    #[error("the server stops")]
    Stopping,
}

/// One attempt and what it came to.
struct AttemptResult {
    outcome: AttemptOutcome,
    attempt: Attempt,
}

impl AttemptResult {
    /// What it says of the endpoint: whether anybody answers there, and answers well.
    fn health(&self) -> Health {
        match (&self.outcome, self.attempt.status) {
            (AttemptOutcome::Retry { .. }, _) => Health::Bad,
            (_, None) => Health::Unknown,
            (_, Some(_)) => Health::Good,
        }
    }
}

/// What is sent now.
struct PreparedDelivery {
    webhook: WebhookRow,
    delivery: DeliveryRow,
    body: Bytes,
    /// Held while a large body is under way.
    permit: BodyPermit,
}

/// What is left of it once there is an answer: neither a large body nor the room for it.
struct AttemptedDelivery {
    webhook: WebhookRow,
    delivery: DeliveryRow,
    /// What a dead letter needs so that it outlives the log; a very large one lives as long as that.
    body_to_keep: Option<Bytes>,
}

impl PreparedDelivery {
    fn into_attempted(self) -> AttemptedDelivery {
        let Self { webhook, delivery, body, permit } = self;
        drop(permit);
        let body_to_keep = (delivery.body.is_none() && body.len() <= DEAD_BYTES).then_some(body);
        AttemptedDelivery { webhook, delivery, body_to_keep }
    }
}

impl Outbox {
    /// Does the next step of a webhook.
    pub(crate) async fn perform(self: &Arc<Self>, started: &Started) -> StepResult {
        let Started { job: webhook, owner, endpoint } = started;
        let (webhook, permit) = match self.body_budget.take_reservation(*webhook) {
            Reservation::Waiting => return StepResult::NOTHING,
            Reservation::Granted(permit) => (*webhook, Some(permit)),
            Reservation::None => (*webhook, None),
        };
        self.next_step(webhook, endpoint, permit).await.unwrap_or_else(|fault| {
            match fault {
                StepError::Crowded => return StepResult { next: Some(self.now()), ..StepResult::NOTHING },
                StepError::OverBudget(bytes) => {
                    let route = Route { webhook, owner: owner.clone(), endpoint: endpoint.to_string() };
                    self.wait_for_budget(route, bytes);
                    return StepResult::NOTHING;
                }
                _ => {}
            }
            // What is not done is found again when cursors are compared.
            if !matches!(fault, StepError::Stopping | StepError::Store(StoreError::Closed)) {
                tracing::warn!(error = %fault, webhook = webhook.0, "a webhook could not be served");
            }
            StepResult::NOTHING
        })
    }

    async fn next_step(
        &self,
        key: WebhookKey,
        endpoint: &str,
        permit: Option<BodyPermit>,
    ) -> Result<StepResult, StepError> {
        // Before it is read what waits: nothing is due by a time that came after a webhook was deleted.
        let now = self.now();
        let Some(mut head) = self.store.head(key).await? else { return Ok(StepResult::NOTHING) };
        let WebhookRow { task, task_key, owner, .. } = &head.webhook;
        if head.webhook.endpoint != endpoint {
            let route = Route { webhook: key, owner: owner.clone(), endpoint: head.webhook.endpoint };
            return Ok(StepResult { moved: Some(route), ..StepResult::NOTHING });
        }
        let config = Config::stored(&head.webhook)?;
        let log = self.log_cache.take(key).unwrap_or_else(|| self.engine.log(task, *task_key));
        let mut renderer = Renderer::new(log, &**self.engine.directory(), &head.webhook, &config);
        if let Some(replay) = head.replay.take() {
            let health = self.replay(head.webhook, &config, replay, permit, &mut renderer).await?;
            // Whatever else there is comes after it.
            return Ok(StepResult { health, next: Some(self.now()), moved: None });
        }
        if head.webhook.state != WebhookState::Active {
            return Ok(StepResult::NOTHING);
        }
        let Some(ready) = self.next_delivery(head, now, permit, &mut renderer).await? else {
            return Ok(StepResult::NOTHING);
        };
        renderer.release_if_large();
        let tried = self.attempt(&ready, &config).await?;
        let health = tried.health();
        let next = self.store_outcome(ready.into_attempted(), tried, &mut renderer).await?;
        // A webhook that has come to its end has no next step.
        if next.is_some() {
            self.log_cache.keep(key, renderer.into_log());
        }
        Ok(StepResult { health, next, moved: None })
    }

    /// The delivery to try now: the one that waits, or the next one made from the log.
    async fn next_delivery(
        &self,
        head: Head,
        now: Timestamp,
        permit: Option<BodyPermit>,
        renderer: &mut Renderer,
    ) -> Result<Option<PreparedDelivery>, StepError> {
        let Head { webhook, delivery, task_last, task_ended_at, .. } = head;
        if let Some(delivery) = delivery {
            // It is what a late webhook begins with, if it is late.
            renderer.has_begun();
            if !is_due(&delivery, &self.options.retries, now) {
                return Ok(None);
            }
            return self.with_body(webhook, delivery, permit, renderer).await.map(Some);
        }
        let permit_to_render = self.render_permit(renderer).await;
        let next = renderer.next(webhook.cursor, now).await?;
        drop(permit_to_render);
        match next {
            Next::Delivery(made) => {
                let permit = permit.or_else(|| self.body_budget.try_acquire(&webhook.owner, made.body.len()));
                let key = webhook.key;
                let prepare = OutboxWrite::Prepare { webhook: key, delivery: made.delivery };
                self.write_step(&webhook, prepare).await?;
                let prepared = self.store.head(key).await?;
                // The webhook as it was read first: the configuration that is used belongs to that revision.
                let Some(Head { delivery: Some(delivery), .. }) = prepared else { return Ok(None) };
                let permit = permit.ok_or(StepError::OverBudget(made.body.len()))?;
                Ok(Some(PreparedDelivery { webhook, delivery, body: made.body, permit }))
            }
            Next::Nothing { .. } if task_ended_at.is_some() => {
                let finished = OutboxWrite::Finished { webhook: webhook.key, cursor: task_last };
                self.write_step(&webhook, finished).await?;
                Ok(None)
            }
            Next::Nothing { seen, bytes } => {
                if bytes > SKIPPED_BYTES {
                    let skipped = OutboxWrite::Skipped { webhook: webhook.key, cursor: seen };
                    self.write_step(&webhook, skipped).await?;
                }
                Ok(None)
            }
        }
    }

    /// A delivery with its body, which is made again if it is not stored.
    async fn with_body(
        &self,
        webhook: WebhookRow,
        delivery: DeliveryRow,
        permit: Option<BodyPermit>,
        renderer: &mut Renderer,
    ) -> Result<PreparedDelivery, StepError> {
        let bytes = delivery.body.as_ref().map_or_else(|| renderer.expected_bytes(), Bytes::len);
        let permit = permit
            .or_else(|| self.body_budget.try_acquire(&webhook.owner, bytes))
            .ok_or(StepError::OverBudget(bytes))?;
        let body = match &delivery.body {
            Some(body) => body.clone(),
            None => {
                let _permit = self.render_permit(renderer).await;
                renderer.again(&delivery).await?
            }
        };
        Ok(PreparedDelivery { webhook, delivery, body, permit })
    }

    /// Waits for a turn to make what may take long. Whoever has it waits for nothing but the store.
    pub(crate) async fn render_permit(&self, renderer: &Renderer) -> Option<SemaphorePermit<'_>> {
        if renderer.is_heavy() { self.rendering.acquire().await.ok() } else { None }
    }

    /// Takes a step, unless the webhook was set again meanwhile.
    async fn write_step(&self, webhook: &WebhookRow, write: OutboxWrite) -> Result<(), StoreError> {
        let (webhook, revision) = (webhook.key, webhook.revision);
        self.store.outbox(OutboxWrite::IfStill { webhook, revision, write: Box::new(write) }).await
    }

    async fn attempt(&self, ready: &PreparedDelivery, config: &Config) -> Result<AttemptResult, StepError> {
        let PreparedDelivery { webhook, delivery, body, .. } = ready;
        if self.engine.closing().is_cancelled() {
            return Err(StepError::Stopping);
        }
        let now = self.now();
        let secrets = secrets(self.secret, &self.signing.lock(), &webhook.owner, now);
        let version = Form::numbered(delivery.form).version;
        let began_at = delivery.began_at;
        let message = DeliveryRequest { webhook, config, last: delivery.last, began_at, version, body: body.clone() };
        let began = Instant::now();
        let answer = match Target::parse(&config.url) {
            Ok(target) => {
                let request = message.request(&target, &secrets, now.0.div_euclid(1_000))?;
                tokio::select! {
                    answer = self.egress.send(request, self.options.timeout, ANSWER_BYTES) => answer,
                    () = self.stopped() => return Err(StepError::Stopping),
                }
            }
            Err(refusal) => Err(SendError::Refused(refusal)),
        };
        if let Err(SendError::Crowded) = answer {
            return Err(StepError::Crowded);
        }
        let duration = began.elapsed();
        let (outcome, status, problem) = AttemptOutcome::of(&answer);
        metrics::histogram!(metric::ATTEMPT_SECONDS).record(duration.as_secs_f64());
        let duration_ms = u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
        Ok(AttemptResult { outcome, attempt: Attempt { at: self.now(), duration_ms, status, problem } })
    }

    /// Tells operators of an attempt, once it is decided what becomes of the delivery.
    fn log_attempt(&self, webhook: &WebhookRow, delivery: &DeliveryRow, attempt: &Attempt, outcome: &'static str) {
        metrics::counter!(metric::ATTEMPTS, "outcome" => outcome).increment(1);
        tracing::info!(
            target: "switchboard::webhooks",
            task = %webhook.task,
            webhook = webhook.key.0,
            delivery = delivery.key.0,
            event = %delivery.last,
            state = delivery.about,
            attempt = delivery.attempts + 1,
            status = attempt.status.unwrap_or(0),
            duration_ms = attempt.duration_ms,
            outcome,
            problem = attempt.problem,
            "webhook"
        );
    }

    /// Resolves a little after the server has begun to stop: most receivers answer in that time.
    async fn stopped(&self) {
        self.engine.closing().cancelled().await;
        tokio::time::sleep(LAST_ANSWERS).await;
    }

    /// Stores what an attempt came to; says when there is more to do, if that is known.
    async fn store_outcome(
        &self,
        answered: AttemptedDelivery,
        tried: AttemptResult,
        renderer: &mut Renderer,
    ) -> Result<Option<Timestamp>, StepError> {
        let AttemptedDelivery { webhook, delivery, body_to_keep: body } = answered;
        let (webhook, delivery) = (&webhook, &delivery);
        let AttemptResult { outcome, mut attempt } = tried;
        let now = self.now();
        let key = delivery.key;
        let finished = is_terminal(&delivery.about);
        let mut label = outcome.label();
        let mut next_at = None;
        if let AttemptOutcome::Retry { after } = outcome {
            next_at = next_attempt(&self.options.retries, delivery.attempts + 1, after, now, jitter());
            if next_at.is_none() {
                label = AttemptOutcome::Dead.label();
                attempt.problem += ", and it was the last attempt";
            }
        }
        self.log_attempt(webhook, delivery, &attempt, label);
        let write = match outcome {
            AttemptOutcome::Delivered => {
                let next = if finished { None } else { self.render_next(webhook, delivery, renderer).await };
                OutboxWrite::Delivered { delivery: key, attempt, finished, next }
            }
            AttemptOutcome::Retry { after } if let Some(due_at) = next_at => {
                let not_before = after.map_or(Timestamp(0), |after| later(now, after));
                let failed = OutboxWrite::Failed { delivery: key, attempt, due_at, not_before };
                self.write_step(webhook, failed).await?;
                return Ok(Some(due_at));
            }
            AttemptOutcome::Retry { .. } | AttemptOutcome::Dead => {
                self.log_dead_letter(webhook, delivery, &attempt);
                OutboxWrite::Dead { delivery: key, body, attempt, finished }
            }
            AttemptOutcome::Disabled => {
                tracing::warn!(task = %webhook.task, webhook = webhook.key.0, "a webhook is disabled, its endpoint answered 410");
                OutboxWrite::Disabled { delivery: key, body, attempt }
            }
        };
        self.write_step(webhook, write).await?;
        // If it was not taken because the webhook was set again, that is more to do as well.
        Ok((!finished).then_some(now))
    }

    /// What comes after a delivery, so that both are stored in one commit. If it cannot be made now it is made later; that
    /// this one was taken must not be lost over it.
    async fn render_next(
        &self,
        webhook: &WebhookRow,
        delivery: &DeliveryRow,
        renderer: &mut Renderer,
    ) -> Option<NewDelivery> {
        let _permit = match renderer.is_heavy() {
            // That this one was taken is stored at once, so nothing is waited for.
            true => Some(self.rendering.try_acquire().ok()?),
            false => None,
        };
        match renderer.next(delivery.last.seq, self.now()).await {
            Ok(Next::Delivery(made)) => Some(made.delivery),
            Ok(Next::Nothing { .. }) => None,
            Err(error) => {
                tracing::warn!(%error, task = %webhook.task, webhook = webhook.key.0, "what comes next could not be made");
                None
            }
        }
    }

    fn log_dead_letter(&self, webhook: &WebhookRow, delivery: &DeliveryRow, attempt: &Attempt) {
        let (webhook_key, delivery_key) = (webhook.key.0, delivery.key.0);
        tracing::warn!(
            target: "switchboard::webhooks",
            task = %webhook.task, webhook = webhook_key, delivery = delivery_key, problem = attempt.problem,
            "a delivery is given up; `switchboard webhooks retry` sends it once more"
        );
    }

    /// Sends a delivery once more because an operator wants it, before what comes in order. One attempt: whoever asked
    /// for it sees what it came to and can ask again.
    async fn replay(
        &self,
        webhook: WebhookRow,
        config: &Config,
        delivery: DeliveryRow,
        permit: Option<BodyPermit>,
        renderer: &mut Renderer,
    ) -> Result<Health, StepError> {
        let key = delivery.key;
        let ready = match self.with_body(webhook, delivery, permit, renderer).await {
            Ok(ready) => ready,
            Err(StepError::Log(error)) => {
                let problem = format!("it could not be made again: {error}");
                let attempt = Attempt { at: self.now(), duration_ms: 0, status: None, problem };
                let dead = OutboxWrite::Dead { delivery: key, body: None, attempt, finished: false };
                self.store.outbox(dead).await?;
                return Ok(Health::Unknown);
            }
            Err(fault) => return Err(fault),
        };
        renderer.release_if_large();
        let tried = self.attempt(&ready, config).await?;
        let health = tried.health();
        let AttemptResult { outcome, attempt } = tried;
        let AttemptedDelivery { webhook, delivery, body_to_keep: body } = ready.into_attempted();
        let label =
            if let AttemptOutcome::Retry { .. } = outcome { AttemptOutcome::Dead.label() } else { outcome.label() };
        self.log_attempt(&webhook, &delivery, &attempt, label);
        let write = match outcome {
            AttemptOutcome::Delivered => OutboxWrite::Delivered { delivery: key, attempt, finished: false, next: None },
            AttemptOutcome::Disabled => OutboxWrite::Disabled { delivery: key, body, attempt },
            AttemptOutcome::Retry { .. } | AttemptOutcome::Dead => {
                OutboxWrite::Dead { delivery: key, body, attempt, finished: false }
            }
        };
        self.write_step(&webhook, write).await?;
        Ok(health)
    }
}

/// Whether what a delivery is about ends its task.
pub(crate) fn is_terminal(about: &str) -> bool {
    matches!(about, "completed" | "failed" | "canceled" | "rejected")
}
