//! The retention job: limits how long ended tasks are held for webhooks that lag behind, and the age, number and size of
//! dead letters.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use switchboard_engine::Error;
use switchboard_engine::clock::earlier;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::webhooks::{Attempt, NewDelivery, OutboxHead, OutboxWrite, WebhookKey, WebhookState};

use crate::Options;
use crate::config::Config;
use crate::journal::Happened;
use crate::outbox::Outbox;
use crate::render::{Next, Renderer};
use crate::step::is_terminal;

const PERIOD: Duration = Duration::from_secs(60);
/// Why a delivery became a dead letter without a last attempt.
const LATE: &str = "not delivered within webhooks.holdTasks of the end of its task";
const CROWDED: &str = "its task had to go, because there is more than store.retention allows";
/// Webhooks read at once.
const STEP: usize = 200;
/// The largest body that is stored with a dead letter; a larger one is rendered from the log while its task is there.
pub(crate) const DEAD_BYTES: usize = 1 << 20;
/// Old dead letters are pruned after so many new ones, or so many bytes of them.
const LETTERS_AT_ONCE: usize = 500;
const BYTES_AT_ONCE: usize = 4 << 20;

/// The dead letters written since the last pruning.
#[derive(Default)]
struct Written {
    letters: usize,
    bytes: usize,
}

impl Outbox {
    /// Runs until the kernel stops.
    pub(crate) async fn run_retention(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.engine.clock().sleep(PERIOD) => {}
                () = self.engine.closing().cancelled() => return,
            }
            match self.apply_retention().await {
                Ok(()) => {}
                Err(StoreError::Closed) => return,
                Err(error) => tracing::warn!(%error, "old deliveries could not be put away"),
            }
        }
    }

    pub(crate) async fn apply_retention(&self) -> Result<(), StoreError> {
        let ended_before = earlier(self.now(), self.options.hold_tasks);
        let mut written = Written::default();
        loop {
            let mut overdue = self.store.overdue_webhooks(ended_before, STEP).await?;
            let late = overdue.len();
            overdue.extend(self.store.held_beyond_caps(self.engine.retention(), STEP).await?);
            let (all, mut given_up) = (overdue.len(), 0);
            for (index, webhook) in overdue.into_iter().enumerate() {
                let problem = if index < late { LATE } else { CROWDED };
                match self.give_up(webhook, problem, &mut written).await {
                    Ok(()) => given_up += 1,
                    // An unreadable one must not hold up the others.
                    Err(error) => tracing::warn!(%error, webhook = webhook.0, "a webhook could not be given up"),
                }
            }
            if all < STEP || given_up < all {
                break;
            }
        }
        self.prune().await
    }

    async fn prune(&self) -> Result<(), StoreError> {
        let Options { dead_letter_age, dead_letters, dead_letter_bytes, .. } = self.options;
        self.store.prune_dead_letters(earlier(self.now(), dead_letter_age), dead_letters, dead_letter_bytes).await?;
        Ok(())
    }

    /// Turns everything after a webhook's cursor into dead letters, with their bodies unless they are very large.
    async fn give_up(&self, key: WebhookKey, problem: &str, written: &mut Written) -> Result<(), Error> {
        let Some(OutboxHead { webhook, delivery, task_last, .. }) = self.store.head(key).await? else {
            return Ok(());
        };
        if !matches!(webhook.state, WebhookState::Active | WebhookState::Paused) {
            return Ok(());
        }
        let config = Config::stored(&webhook).map_err(|error| StoreError::Failed(error.to_string()))?;
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
                None => {
                    let turn = self.render_permit(&renderer).await;
                    let body = renderer.again(&delivery).await?;
                    drop(turn);
                    kept(body)
                }
            };
            let bytes = delivery.body.as_ref().or(body.as_ref()).map_or(0, Bytes::len);
            let write = OutboxWrite::Dead { delivery: delivery.key, body, attempt, finished: ended };
            self.write_dead_letter(write, bytes, written).await?;
        }
        while !ended {
            let turn = self.render_permit(&renderer).await;
            let Next::Delivery(made) = renderer.next(cursor, self.now()).await? else { break };
            drop(turn);
            (cursor, ended) = (made.delivery.last.seq, made.is_last);
            let delivery = NewDelivery { body: kept(made.body), ..made.delivery };
            let bytes = delivery.body.as_ref().map_or(0, Bytes::len);
            let write = OutboxWrite::Abandon { webhook: key, delivery, problem: problem.to_owned() };
            self.write_dead_letter(write, bytes, written).await?;
        }
        self.store.outbox(OutboxWrite::Finished { webhook: key, cursor: task_last }).await?;
        tracing::warn!(task = %webhook.task, webhook = key.0, "a webhook was not served in time; its deliveries are dead letters");
        self.tell_of_webhook(Happened::Dead, &webhook, Some(problem));
        Ok(())
    }

    /// Writes a dead letter, and prunes before there are far too many.
    async fn write_dead_letter(
        &self,
        write: OutboxWrite,
        bytes: usize,
        written: &mut Written,
    ) -> Result<(), StoreError> {
        self.store.outbox(write).await?;
        written.letters += 1;
        written.bytes += bytes;
        if written.letters >= LETTERS_AT_ONCE || written.bytes >= BYTES_AT_ONCE {
            *written = Written::default();
            self.prune().await?;
        }
        Ok(())
    }
}

fn kept(body: Bytes) -> Option<Bytes> {
    (body.len() <= DEAD_BYTES).then_some(body)
}

#[cfg(test)]
mod tests {
    use switchboard_a2a::{Timestamp, Version};
    use switchboard_engine::clock::SimulatedClock;
    use switchboard_engine::store::webhooks::DeliveryKey;
    use tokio::net::TcpSocket;

    use super::*;
    use crate::outbox::tests::{send, unstarted};

    /// What has not happened after so long never will. It says nothing about speed.
    const HANG_GUARD: Duration = Duration::from_secs(300);

    #[tokio::test]
    async fn a_body_is_made_only_when_it_is_its_turn() {
        let clock = SimulatedClock::at(Timestamp(1_800_000_000_000));
        let (_folder, webhooks) = unstarted(Arc::new(clock.clone())).await;
        let store = &webhooks.outbox.store;
        // Nobody listens there, and nobody else can while the socket is bound.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let config = format!(r#"{{"url":"http://{}/"}}"#, socket.local_addr().unwrap());
        send(&webhooks, (1 << 20).to_string(), Version::V03, &config).await;
        clock.advance(Options::default().hold_tasks * 2);

        let rendering = &webhooks.outbox.rendering;
        let mut other_rendering = Some(rendering.acquire().await.unwrap());
        let look = async {
            // A permit that is dropped goes to the one who waits for it. As long as it can be taken back, nobody does, and
            // nothing has been made without it.
            while let Some(permit) = other_rendering.take() {
                assert!(store.dead_letters(DeliveryKey(0), 1).await.unwrap().is_empty());
                drop(permit);
                other_rendering = rendering.try_acquire().ok();
            }
        };
        let both = async { tokio::join!(webhooks.outbox.apply_retention(), look) };
        let (retained, ()) = tokio::time::timeout(HANG_GUARD, both).await.expect("it waits for its permit");
        retained.unwrap();
        assert!(!store.dead_letters(DeliveryKey(0), 1).await.unwrap().is_empty());
    }
}
