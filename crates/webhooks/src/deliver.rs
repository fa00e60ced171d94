//! One step of one webhook: what is next is made and stored, sent, and what came of it is stored. A body is stored
//! before it is sent for the first time, so that whatever happens next, it is sent again the same.

use std::time::Instant;

use switchboard_a2a::Timestamp;
use switchboard_egress::{SendError, Target};
use switchboard_engine::Error;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::webhooks::{
    Attempt, DeliveryKey, DeliveryRow, DeliveryState, Head, OutboxWrite, WebhookKey, WebhookRow, WebhookState,
};

use crate::config::Config;
use crate::endpoints::{Health, Job};
use crate::metric_definitions as metric;
use crate::outbox::Inner;
use crate::render::{Form, Renderer};
use crate::request::Message;
use crate::schedule::{jitter, next_attempt};
use crate::signature::secrets;
use crate::verdict::Verdict;

/// How much of an answer is read before the connection is given up rather than used again.
const ANSWER_BYTES: usize = 16 << 10;

/// Why a step was not taken.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Log(#[from] Error),
    #[error("the configuration cannot be read: {0}")]
    Config(#[from] serde_json::Error),
    #[error("the request cannot be made: {0}")]
    Request(#[from] http::Error),
}

/// One attempt and what it came to.
struct Tried {
    verdict: Verdict,
    attempt: Attempt,
    health: Health,
}

impl Inner {
    /// Does a job; says how the endpoint is and when there is more to do, if that is known.
    pub(crate) async fn perform(&self, job: Job) -> (Health, Option<Timestamp>) {
        let performed = match job {
            Job::Next(webhook) => self.next_step(webhook).await,
            Job::Replay(delivery) => self.replay(delivery).await.map(|health| (health, None)),
        };
        performed.unwrap_or_else(|fault| {
            // What is not done is found again when cursors are compared.
            if !matches!(fault, Fault::Store(StoreError::Closed)) {
                tracing::warn!(error = %fault, ?job, "a webhook could not be served");
            }
            (Health::Unknown, None)
        })
    }

    async fn next_step(&self, key: WebhookKey) -> Result<(Health, Option<Timestamp>), Fault> {
        let Some(head) = self.store.head(key).await? else { return Ok((Health::Unknown, None)) };
        if head.webhook.state != WebhookState::Active {
            return Ok((Health::Unknown, None));
        }
        let config = Config::stored(&head.webhook)?;
        let log = self.engine.log(&head.webhook.task, head.webhook.task_key);
        let mut renderer = Renderer::new(log, &**self.engine.directory(), &head.webhook, &config);
        let Some((webhook, delivery)) = self.due(head, &mut renderer).await? else {
            return Ok((Health::Unknown, None));
        };
        let tried = self.attempt(&webhook, &config, &delivery).await?;
        let next = self.conclude(&webhook, &delivery, tried.verdict, tried.attempt, &mut renderer).await?;
        Ok((tried.health, next))
    }

    /// The delivery to try now: the one that waits, or the next one made from the log.
    async fn due(&self, head: Head, renderer: &mut Renderer) -> Result<Option<(WebhookRow, DeliveryRow)>, Fault> {
        let now = self.now();
        let Head { webhook, delivery, task_last, task_ended_at } = head;
        if let Some(delivery) = delivery {
            // It is what a late webhook begins with, if it is late.
            renderer.has_begun();
            return Ok((delivery.due_at <= now).then_some((webhook, delivery)));
        }
        match renderer.next(webhook.cursor, now).await? {
            Some(next) => {
                let key = webhook.key;
                self.store.outbox(OutboxWrite::Prepare { webhook: key, delivery: next.delivery }).await?;
                let prepared = self.store.head(key).await?;
                Ok(prepared.and_then(|head| Some((head.webhook, head.delivery?))))
            }
            None if task_ended_at.is_some() => {
                self.store.outbox(OutboxWrite::Finished { webhook: webhook.key, cursor: task_last }).await?;
                Ok(None)
            }
            None => Ok(None),
        }
    }

    async fn attempt(&self, webhook: &WebhookRow, config: &Config, delivery: &DeliveryRow) -> Result<Tried, Fault> {
        let now = self.now();
        let signing = *self.signing.lock();
        let secrets = secrets(self.secret, signing, &webhook.owner, now);
        let body = delivery.body.clone().unwrap_or_default();
        let version = Form::numbered(delivery.form).version;
        let message = Message { webhook, config, last: delivery.last, version, body };
        let began = Instant::now();
        let answer = match Target::parse(&config.url) {
            Ok(target) => {
                let request = message.request(&target, &secrets, now.0.div_euclid(1_000))?;
                self.egress.send(request, self.options.timeout, ANSWER_BYTES).await
            }
            Err(refusal) => Err(SendError::Refused(refusal)),
        };
        let duration = began.elapsed();
        let (verdict, status, problem) = Verdict::of(&answer);
        let health = match (&answer, &verdict) {
            (_, Verdict::Retry { .. }) => Health::Bad,
            (Err(_), _) => Health::Unknown,
            (Ok(_), _) => Health::Good,
        };
        metrics::counter!(metric::ATTEMPTS, "outcome" => verdict.label()).increment(1);
        metrics::histogram!(metric::ATTEMPT_SECONDS).record(duration.as_secs_f64());
        let duration_ms = u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
        tracing::info!(
            target: "switchboard::webhooks",
            task = %webhook.task,
            webhook = webhook.key.0,
            delivery = delivery.key.0,
            event = %delivery.last,
            state = delivery.about,
            attempt = delivery.attempts + 1,
            status = status.unwrap_or(0),
            duration_ms,
            outcome = verdict.label(),
            problem,
            "webhook"
        );
        Ok(Tried { verdict, attempt: Attempt { at: self.now(), duration_ms, status, problem }, health })
    }

    /// Stores what an attempt came to; says when there is more to do, if that is known.
    async fn conclude(
        &self,
        webhook: &WebhookRow,
        delivery: &DeliveryRow,
        verdict: Verdict,
        mut attempt: Attempt,
        renderer: &mut Renderer,
    ) -> Result<Option<Timestamp>, Fault> {
        let now = self.now();
        let key = delivery.key;
        let finished = delivery.about != "artifact" && is_terminal(&delivery.about);
        let (write, next) = match verdict {
            Verdict::Delivered => {
                let next = match finished {
                    true => None,
                    false => renderer.next(delivery.last.seq, now).await?,
                };
                let next = next.map(|next| next.delivery);
                let due_at = next.as_ref().map(|next| next.at);
                (OutboxWrite::Delivered { delivery: key, attempt, finished, next }, due_at)
            }
            Verdict::Retry { after } => {
                let attempts = delivery.attempts + 1;
                match next_attempt(&self.options.retries, attempts, after, now, jitter()) {
                    Some(due_at) => (OutboxWrite::Failed { delivery: key, attempt, due_at }, Some(due_at)),
                    None => {
                        attempt.problem += ", and it was the last attempt";
                        self.tell_dead(webhook, delivery, &attempt);
                        (OutboxWrite::Dead { delivery: key, attempt, finished }, (!finished).then_some(now))
                    }
                }
            }
            Verdict::Dead => {
                self.tell_dead(webhook, delivery, &attempt);
                (OutboxWrite::Dead { delivery: key, attempt, finished }, (!finished).then_some(now))
            }
            Verdict::Disabled => {
                tracing::warn!(task = %webhook.task, webhook = webhook.key.0, "a webhook is disabled, its endpoint answered 410");
                (OutboxWrite::Disabled { delivery: key, attempt }, None)
            }
        };
        self.store.outbox(write).await?;
        Ok(next)
    }

    fn tell_dead(&self, webhook: &WebhookRow, delivery: &DeliveryRow, attempt: &Attempt) {
        let (webhook_key, delivery_key) = (webhook.key.0, delivery.key.0);
        tracing::warn!(
            target: "switchboard::webhooks",
            task = %webhook.task, webhook = webhook_key, delivery = delivery_key, problem = attempt.problem,
            "a delivery is given up; `switchboard webhooks retry` sends it once more"
        );
    }

    /// Sends a delivery once more because an operator wants it, beside what comes in order. One attempt: whoever asked
    /// for it sees what it came to and can ask again.
    async fn replay(&self, key: DeliveryKey) -> Result<Health, Fault> {
        let Some((webhook, mut delivery)) = self.store.delivery(key).await? else { return Ok(Health::Unknown) };
        if delivery.state != DeliveryState::Pending || !delivery.replay {
            return Ok(Health::Unknown);
        }
        let config = Config::stored(&webhook)?;
        if delivery.body.is_none() {
            let log = self.engine.log(&webhook.task, webhook.task_key);
            let mut renderer = Renderer::new(log, &**self.engine.directory(), &webhook, &config);
            delivery.body = match renderer.again(&delivery).await {
                Ok(body) => Some(body),
                Err(error) => {
                    let problem = format!("it could not be made again: {error}");
                    let attempt = Attempt { at: self.now(), duration_ms: 0, status: None, problem };
                    self.store.outbox(OutboxWrite::Dead { delivery: key, attempt, finished: false }).await?;
                    return Ok(Health::Unknown);
                }
            };
        }
        let Tried { verdict, attempt, health } = self.attempt(&webhook, &config, &delivery).await?;
        let write = match verdict {
            Verdict::Delivered => OutboxWrite::Delivered { delivery: key, attempt, finished: false, next: None },
            Verdict::Disabled => OutboxWrite::Disabled { delivery: key, attempt },
            Verdict::Retry { .. } | Verdict::Dead => OutboxWrite::Dead { delivery: key, attempt, finished: false },
        };
        self.store.outbox(write).await?;
        Ok(health)
    }
}

/// Whether what a delivery is about ends its task.
pub(crate) fn is_terminal(about: &str) -> bool {
    matches!(about, "completed" | "failed" | "canceled" | "rejected")
}
