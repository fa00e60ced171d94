//! One step of one webhook: render and store the next delivery, attempt it, store the outcome. A delivery is stored
//! before its first attempt, so that after a crash the same bytes are sent again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use switchboard_a2a::Timestamp;
use switchboard_egress::{SendError, Target, jitter};
use switchboard_engine::Error;
use switchboard_engine::clock::later;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::webhooks::{
    Attempt, DeliveryRow, NewDelivery, OutboxHead, OutboxWrite, WebhookKey, WebhookRoute, WebhookRow, WebhookState,
};
use tokio::sync::SemaphorePermit;

use crate::body_budget::{BodyPermit, Reservation};
use crate::config::Config;
use crate::endpoints::{Health, Started};
use crate::journal::Happened;
use crate::metric_definitions as metric;
use crate::outbox::{Outbox, StepResult};
use crate::outcome::AttemptOutcome;
use crate::render::{Next, Renderer};
use crate::request::signed_request;
use crate::retention::DEAD_BYTES;
use crate::retry_policy::{is_due, next_attempt};
use crate::signature::secrets;

/// How much of a response is read before the connection is closed rather than used again.
const RESPONSE_BYTES: usize = 16 << 10;
/// Unwanted events beyond this size move the cursor, so that they are not read again.
const SKIPPED_BYTES: usize = 64 << 10;
/// How long an attempt may go on after a graceful shutdown has begun: most receivers answer in that time.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

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
    /// The body, of so many bytes, waits for its permit.
    #[error("there is no room for {0} bytes")]
    OverBudget(usize),
    /// The endpoint was not called for a reason of this server, so no attempt is used up.
    #[error("as many connections are open as may be")]
    Crowded,
    /// The delivery is stored, and the next process sends it.
    #[error("the server stops")]
    Stopping,
}

struct PreparedDelivery {
    webhook: WebhookRow,
    delivery: DeliveryRow,
    body: Bytes,
    permit: BodyPermit,
}

/// A delivery after an attempt, without the permit of its body.
struct AttemptedDelivery {
    webhook: WebhookRow,
    delivery: DeliveryRow,
    /// Stored with a dead letter, so that it outlives the log; a very large one lives as long as the log.
    body_to_keep: Option<Bytes>,
    outcome: AttemptOutcome,
    attempt: Attempt,
}

impl AttemptedDelivery {
    fn health(&self) -> Health {
        match (&self.outcome, self.attempt.status) {
            (AttemptOutcome::Retry { .. }, _) => Health::Bad,
            (_, None) => Health::Unknown,
            (_, Some(_)) => Health::Good,
        }
    }
}

impl Outbox {
    /// Takes the next step of a webhook.
    pub(crate) async fn perform(self: &Arc<Self>, started: &Started) -> StepResult {
        let Started { job: webhook, owner, endpoint } = started;
        let permit = match self.body_budget.take_reservation(*webhook) {
            Reservation::Waiting => return StepResult::NOTHING,
            Reservation::Granted(permit) => Some(permit),
            Reservation::None => None,
        };
        let error = match self.next_step(*webhook, endpoint, permit).await {
            Ok(result) => return result,
            Err(error) => error,
        };
        match error {
            StepError::Crowded => return StepResult { next: Some(self.now()), ..StepResult::NOTHING },
            StepError::OverBudget(bytes) => {
                let route = WebhookRoute { webhook: *webhook, owner: owner.clone(), endpoint: endpoint.to_string() };
                self.wait_for_budget(route, bytes);
            }
            StepError::Stopping | StepError::Store(StoreError::Closed) => {}
            // The next comparison of cursors finds the webhook again.
            _ => tracing::warn!(%error, webhook = webhook.0, "a webhook could not be served"),
        }
        StepResult::NOTHING
    }

    async fn next_step(
        &self,
        key: WebhookKey,
        endpoint: &str,
        permit: Option<BodyPermit>,
    ) -> Result<StepResult, StepError> {
        // Read before the store: a delivery must not be due by a time after its webhook was deleted.
        let now = self.now();
        let Some(mut head) = self.store.head(key).await? else { return Ok(StepResult::NOTHING) };
        let WebhookRow { task, task_key, owner, .. } = &head.webhook;
        if head.webhook.endpoint != endpoint {
            let route = WebhookRoute { webhook: key, owner: owner.clone(), endpoint: head.webhook.endpoint };
            return Ok(StepResult { moved: Some(route), ..StepResult::NOTHING });
        }
        let config = Config::stored(&head.webhook)?;
        let log = self.log_cache.take(key).unwrap_or_else(|| self.engine.log(task, *task_key));
        let mut renderer = Renderer::new(log, &**self.engine.directory(), &head.webhook, &config);
        let replay = head.replay.take();
        let is_replay = replay.is_some();
        let prepared = match replay {
            Some(replay) => self.replay(head.webhook, replay, permit, &mut renderer).await?,
            None if head.webhook.state != WebhookState::Active => None,
            None => self.next_delivery(head, now, permit, &mut renderer).await?,
        };
        let Some(prepared) = prepared else {
            // The deliveries in order come after a replay.
            return Ok(StepResult { next: is_replay.then(|| self.now()), ..StepResult::NOTHING });
        };
        renderer.release_if_large();
        let attempted = self.attempt(prepared, &config).await?;
        let health = attempted.health();
        let next = self.store_outcome(attempted, &mut renderer).await?;
        // A finished webhook has no next step, and a replay may be of one.
        if next.is_some() && !is_replay {
            self.log_cache.keep(key, renderer.into_log());
        }
        Ok(StepResult { health, next, moved: None })
    }

    /// The delivery to attempt now: the pending one if it is due, or else the next one rendered from the log.
    async fn next_delivery(
        &self,
        head: OutboxHead,
        now: Timestamp,
        permit: Option<BodyPermit>,
        renderer: &mut Renderer,
    ) -> Result<Option<PreparedDelivery>, StepError> {
        let OutboxHead { webhook, delivery, task_last, task_ended_at, .. } = head;
        if let Some(delivery) = delivery {
            renderer.has_begun();
            if !is_due(&delivery, &self.options.retries, now) {
                return Ok(None);
            }
            return self.with_body(webhook, delivery, permit, renderer).await.map(Some);
        }
        let render_permit = self.render_permit(renderer).await;
        let next = renderer.next(webhook.cursor, now).await?;
        drop(render_permit);
        match next {
            Next::Delivery(rendered) => {
                let bytes = rendered.body.len();
                let permit = permit.or_else(|| self.body_budget.try_acquire(&webhook.owner, bytes));
                let prepare = OutboxWrite::Prepare { webhook: webhook.key, delivery: rendered.delivery };
                self.write_step(&webhook, prepare).await?;
                let prepared = self.store.head(webhook.key).await?;
                // The webhook as it was read first: the configuration in use belongs to that revision.
                let Some(OutboxHead { delivery: Some(delivery), .. }) = prepared else { return Ok(None) };
                let permit = permit.ok_or(StepError::OverBudget(bytes))?;
                return Ok(Some(PreparedDelivery { webhook, delivery, body: rendered.body, permit }));
            }
            Next::Nothing { .. } if task_ended_at.is_some() => {
                let finished = OutboxWrite::Finished { webhook: webhook.key, cursor: task_last };
                self.write_step(&webhook, finished).await?;
            }
            Next::Nothing { seen, bytes } if bytes > SKIPPED_BYTES => {
                let skipped = OutboxWrite::Skipped { webhook: webhook.key, cursor: seen };
                self.write_step(&webhook, skipped).await?;
            }
            Next::Nothing { .. } => {}
        }
        Ok(None)
    }

    /// A delivery with its body, which is rendered again if it is not stored.
    async fn with_body(
        &self,
        webhook: WebhookRow,
        delivery: DeliveryRow,
        permit: Option<BodyPermit>,
        renderer: &mut Renderer,
    ) -> Result<PreparedDelivery, StepError> {
        let bytes = delivery.body.as_ref().map_or_else(|| renderer.expected_bytes(), Bytes::len);
        let permit = permit.or_else(|| self.body_budget.try_acquire(&webhook.owner, bytes));
        let permit = permit.ok_or(StepError::OverBudget(bytes))?;
        let body = match &delivery.body {
            Some(body) => body.clone(),
            None => {
                let _permit = self.render_permit(renderer).await;
                renderer.again(&delivery).await?
            }
        };
        Ok(PreparedDelivery { webhook, delivery, body, permit })
    }

    /// Waits for the permit to render a large body. Its holder waits for nothing but the store.
    pub(crate) async fn render_permit(&self, renderer: &Renderer) -> Option<SemaphorePermit<'_>> {
        if renderer.is_heavy() { self.rendering.acquire().await.ok() } else { None }
    }

    /// Writes a step unless the webhook was set again meanwhile.
    async fn write_step(&self, webhook: &WebhookRow, write: OutboxWrite) -> Result<(), StoreError> {
        let (webhook, revision) = (webhook.key, webhook.revision);
        self.store.outbox(OutboxWrite::IfStill { webhook, revision, write: Box::new(write) }).await
    }

    async fn attempt(&self, prepared: PreparedDelivery, config: &Config) -> Result<AttemptedDelivery, StepError> {
        let PreparedDelivery { webhook, delivery, body, permit } = prepared;
        if self.engine.closing().is_cancelled() {
            return Err(StepError::Stopping);
        }
        let now = self.now();
        let secrets = secrets(self.secret, &self.signing.lock(), &webhook.owner, now);
        let began = Instant::now();
        let response = match Target::parse(&config.push.url) {
            Ok(target) => {
                let (seconds, body) = (now.0.div_euclid(1_000), body.clone());
                let request = signed_request((&webhook, config), &delivery, body, &target, &secrets, seconds)?;
                tokio::select! {
                    response = self.egress.send(request, self.options.timeout, RESPONSE_BYTES) => response,
                    () = self.shutdown_grace_over() => return Err(StepError::Stopping),
                }
            }
            Err(refusal) => Err(SendError::Refused(refusal)),
        };
        drop(permit);
        if let Err(SendError::ConnectionLimit) = response {
            return Err(StepError::Crowded);
        }
        let duration = began.elapsed();
        metrics::histogram!(metric::ATTEMPT_SECONDS).record(duration.as_secs_f64());
        let (outcome, status, problem) = AttemptOutcome::of(&response);
        let duration_ms = u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
        let attempt = Attempt { at: self.now(), duration_ms, status, problem };
        let body_to_keep = (delivery.body.is_none() && body.len() <= DEAD_BYTES).then_some(body);
        Ok(AttemptedDelivery { webhook, delivery, body_to_keep, outcome, attempt })
    }

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

    async fn shutdown_grace_over(&self) {
        self.engine.closing().cancelled().await;
        tokio::time::sleep(SHUTDOWN_GRACE).await;
    }

    /// Stores the outcome of an attempt; returns when the next step is due, if that is known. There is no retry of a
    /// replay: the operator sees the outcome and can send it again.
    async fn store_outcome(
        &self,
        attempted: AttemptedDelivery,
        renderer: &mut Renderer,
    ) -> Result<Option<Timestamp>, StepError> {
        let AttemptedDelivery { webhook, delivery, body_to_keep: body, outcome, mut attempt } = attempted;
        let now = self.now();
        let key = delivery.key;
        let finished = is_terminal(&delivery.about) && !delivery.replay;
        let mut label = outcome.label();
        let mut next_at = None;
        if let AttemptOutcome::Retry { after } = outcome {
            if !delivery.replay {
                next_at = next_attempt(&self.options.retries, delivery.attempts + 1, after, now, jitter());
                attempt.problem += if next_at.is_none() { ", and it was the last attempt" } else { "" };
            }
            if next_at.is_none() {
                label = AttemptOutcome::Dead.label();
            }
        }
        self.log_attempt(&webhook, &delivery, &attempt, label);
        let write = match outcome {
            AttemptOutcome::Delivered => {
                let has_next = !finished && !delivery.replay;
                let next = if has_next { self.render_next(&webhook, &delivery, renderer).await } else { None };
                OutboxWrite::Delivered { delivery: key, attempt, finished, next }
            }
            AttemptOutcome::Retry { after } if let Some(due_at) = next_at => {
                let not_before = after.map_or(Timestamp(0), |after| later(now, after));
                let failed = OutboxWrite::Failed { delivery: key, attempt, due_at, not_before };
                self.write_step(&webhook, failed).await?;
                return Ok(Some(due_at));
            }
            AttemptOutcome::Retry { .. } | AttemptOutcome::Dead => {
                tracing::warn!(
                    target: "switchboard::webhooks",
                    task = %webhook.task, webhook = webhook.key.0, delivery = key.0, problem = attempt.problem,
                    "a delivery is given up; `switchboard webhooks retry` sends it once more"
                );
                self.tell_of_webhook(Happened::Dead, &webhook, Some(&attempt.problem));
                OutboxWrite::Dead { delivery: key, body, attempt, finished }
            }
            AttemptOutcome::Disabled => {
                tracing::warn!(task = %webhook.task, webhook = webhook.key.0, "a webhook is disabled, its endpoint answered 410");
                OutboxWrite::Disabled { delivery: key, body, attempt }
            }
        };
        self.write_step(&webhook, write).await?;
        // A webhook that was set again meanwhile has a next step too.
        Ok((!finished).then_some(now))
    }

    /// The delivery after one that was taken, for the same commit. It is rendered only if that needs no waiting, and later
    /// if it fails: neither may keep the success of this one from being stored.
    async fn render_next(
        &self,
        webhook: &WebhookRow,
        delivery: &DeliveryRow,
        renderer: &mut Renderer,
    ) -> Option<NewDelivery> {
        let _permit = match renderer.is_heavy() {
            true => Some(self.rendering.try_acquire().ok()?),
            false => None,
        };
        match renderer.next(delivery.last.seq, self.now()).await {
            Ok(Next::Delivery(rendered)) => Some(rendered.delivery),
            Ok(Next::Nothing { .. }) => None,
            Err(error) => {
                tracing::warn!(%error, task = %webhook.task, webhook = webhook.key.0, "what comes next could not be made");
                None
            }
        }
    }

    /// A delivery that an operator sends once more, before the deliveries in order. One whose log is gone is a dead letter
    /// again.
    async fn replay(
        &self,
        webhook: WebhookRow,
        delivery: DeliveryRow,
        permit: Option<BodyPermit>,
        renderer: &mut Renderer,
    ) -> Result<Option<PreparedDelivery>, StepError> {
        let key = delivery.key;
        match self.with_body(webhook, delivery, permit, renderer).await {
            Err(StepError::Log(error)) => {
                let problem = format!("it could not be made again: {error}");
                let attempt = Attempt { at: self.now(), duration_ms: 0, status: None, problem };
                let dead = OutboxWrite::Dead { delivery: key, body: None, attempt, finished: false };
                self.store.outbox(dead).await?;
                Ok(None)
            }
            prepared => prepared.map(Some),
        }
    }
}

/// Whether a delivery reports a terminal state.
pub(crate) fn is_terminal(about: &str) -> bool {
    matches!(about, "completed" | "failed" | "canceled" | "rejected")
}
