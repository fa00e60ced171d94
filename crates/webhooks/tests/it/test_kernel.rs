//! A kernel with webhooks over a store in a folder: an agent that does what its text says, step by step, and a clock that
//! stands still until it is turned.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use switchboard_a2a::{Artifact, Message, Part, PushConfig, Role, TaskId, Timestamp, Version};
use switchboard_egress::{Allowlist, Egress};
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::store::Store;
use switchboard_engine::store::feed::{FeedContent, Position};
use switchboard_engine::*;
use switchboard_store::{Durability, SqliteStore};
use switchboard_webhooks::{Options, WebhookService, Webhooks};
use tokio::sync::Semaphore;

use crate::receiver::Receiver;

/// Does the steps of its text, which are parted by semicolons.
#[derive(Clone)]
struct Steps {
    gate: Arc<Semaphore>,
}

impl Agent for Steps {
    fn manifest(&self) -> Manifest {
        Manifest { replies: Replies::Either, ..Manifest::new("Steps", "Does the steps of its text") }
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        for step in turn.text().split(';') {
            let (verb, object) = step.trim().split_once(' ').unwrap_or((step.trim(), ""));
            match verb {
                "say" => task.status(object).await?,
                "chunk" => task.text(object).await?,
                "put" => task.chunk(artifact(object), false, false, None).await?,
                "add" => task.chunk(artifact(object), true, false, None).await?,
                "end" => task.chunk(artifact(object).named("whole"), true, true, None).await?,
                "wait" => self.gate.acquire().await.map_err(|error| AgentError::new(error.to_string()))?.forget(),
                "ask" => drop(task.ask(object).await?),
                "reply" => return Ok(task.reply(vec![Part::text(object)]).await?),
                "hold" => {
                    task.canceled().await;
                    return Ok(());
                }
                _ => return Err(AgentError::new(format!("no step {verb:?}"))),
            }
        }
        Ok(task.complete().await?)
    }
}

/// An artifact out of its id and text.
fn artifact(object: &str) -> Artifact {
    let (id, text) = object.split_once(' ').unwrap_or((object, ""));
    Artifact { artifact_id: id.into(), ..Artifact::text(text) }
}

/// A kernel with webhooks.
pub(crate) struct TestKernel {
    pub(crate) engine: Engine,
    pub(crate) webhooks: Webhooks,
    pub(crate) service: WebhookService,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) clock: SimulatedClock,
    gate: Arc<Semaphore>,
}

pub(crate) const START: i64 = 1_800_000_000_000;

impl TestKernel {
    pub(crate) async fn open(folder: &Path) -> Self {
        Self::with(folder, options(), Switches::default()).await
    }

    pub(crate) async fn with(folder: &Path, options: Options, switches: Switches) -> Self {
        Self::at(folder, options, switches, Timestamp(START)).await
    }

    pub(crate) async fn at(folder: &Path, options: Options, switches: Switches, now: Timestamp) -> Self {
        // Told with a test that fails; the first kernel of a process sets it up.
        let _ = tracing_subscriber::fmt().with_test_writer().try_init();
        let clock = SimulatedClock::at(now);
        let (durability, max_queue_delay) = (Durability::Process, Duration::from_secs(3_600));
        let options_of_store = switchboard_store::Options { durability, max_queue_delay, ..Default::default() };
        let store = SqliteStore::open(folder, options_of_store);
        let store = Arc::new(store.unwrap());
        let gate = Arc::new(Semaphore::new(0));
        let agent = Hosted::serving("steps", Served::new(Steps { gate: Arc::clone(&gate) }).switches(switches));
        let directory = Arc::new(FixedDirectory::new(vec![agent], None));
        let shared = Arc::new(clock.clone());
        let engine = Engine::start(store.clone(), directory, shared, Settings::default()).await.unwrap();
        let allowlist = Allowlist::parse(["localhost"], ["127.0.0.0/8"]).unwrap();
        let egress = Egress::new(switchboard_egress::Options { allowlist, ..Default::default() }).unwrap();
        let webhooks = Webhooks::new(engine.clone(), store.clone(), egress, options).await.unwrap();
        let webhooks = webhooks.with_journal(store.clone(), |payload| payload["redacted"] = true.into());
        webhooks.start();
        Self { service: webhooks.service(), engine, webhooks, store, clock, gate }
    }

    /// Lets agents pass so many waits.
    pub(crate) fn pass(&self, waits: usize) {
        self.gate.add_permits(waits);
    }

    /// Sends steps, with a webhook if one is given; the task is there when this returns, at work or done.
    pub(crate) async fn send(&self, steps: &str, webhook: Option<(Version, PushConfig)>) -> TaskId {
        self.submit(steps, None, webhook).await.id().clone()
    }

    /// The same, and waits until the task ends or asks.
    pub(crate) async fn finish(&self, steps: &str, webhook: Option<(Version, PushConfig)>) -> TaskId {
        let submitted = self.submit(steps, None, webhook).await;
        submitted.answer().await;
        submitted.id().clone()
    }

    pub(crate) async fn submit(
        &self,
        steps: &str,
        task: Option<&TaskId>,
        webhook: Option<(Version, PushConfig)>,
    ) -> Submitted {
        let mut message = Message::text(Role::User, steps);
        message.task_id = task.cloned();
        let prepared = match &webhook {
            Some((version, config)) => Some(self.webhooks.prepare(&caller(), *version, config).await.unwrap()),
            None => None,
        };
        let send = IncomingMessage {
            address: address(),
            message,
            accepted_output_modes: Vec::new(),
            metadata: None,
            idempotency_key: None,
            trace: None,
            push_config: webhook.map(|(_, config)| config),
            webhook: prepared,
            // Who does not wait gets a task, never a direct reply.
            return_immediately: !steps.starts_with("reply"),
            streaming: false,
        };
        self.engine.send(self.engine.route(&caller(), send).await.unwrap()).await.unwrap()
    }

    pub(crate) async fn set(&self, version: Version, task: &TaskId, config: &PushConfig) -> Result<PushConfig, Error> {
        self.webhooks.set(&address(), &caller(), version, task, config).await
    }

    /// Turns the clock.
    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Waits until operators see what is looked for.
    pub(crate) async fn until<T>(&self, mut look: impl AsyncFnMut(&WebhookService) -> Option<T>) -> T {
        let deadline = std::time::Instant::now() + Duration::from_secs(120);
        loop {
            if let Some(found) = look(&self.service).await {
                return found;
            }
            assert!(std::time::Instant::now() < deadline, "{:#?}", self.service.list(None, None, 0, 10).await);
            tokio::task::yield_now().await;
        }
    }

    /// The topics and payloads of the journal's lines, once there are so many.
    pub(crate) async fn journal(&self, count: usize) -> Vec<(String, Value)> {
        self.until(async |_| {
            let page = self.store.read_all(Position::default(), 10_000, 1 << 20).await.unwrap();
            let lines = page.rows.iter().filter_map(|row| match &row.content {
                FeedContent::Journal(line) => {
                    Some((line.topic.clone(), serde_json::from_slice(&line.payload).unwrap()))
                }
                FeedContent::Events { .. } => None,
            });
            let lines: Vec<(String, Value)> = lines.collect();
            (lines.len() >= count).then_some(lines)
        })
        .await
    }

    /// Waits until everything that is due now has been looked at: a webhook that comes after it has been told all.
    pub(crate) async fn settle(&self) {
        let receiver = Receiver::open().await;
        self.finish("say settled", Some((Version::V1, to(&receiver)))).await;
        receiver.got(2).await;
    }

    /// Waits until all webhooks have come to their end.
    pub(crate) async fn all_finished(&self) {
        self.until(async |service| {
            let all = service.list(None, None, 0, 10_000).await.unwrap();
            all.iter().all(|webhook| webhook.state == "finished").then_some(())
        })
        .await;
    }
}

pub(crate) fn address() -> Address {
    Address::Agent("steps".into())
}

pub(crate) fn caller() -> Caller {
    Caller::local()
}

/// The usual, but for the time a receiver has: a machine that stands still for a while must not make a retry of it.
pub(crate) fn options() -> Options {
    Options { timeout: Duration::from_secs(120), ..Options::default() }
}

/// A webhook that goes to a receiver.
pub(crate) fn to(receiver: &Receiver) -> PushConfig {
    config(&receiver.url)
}

pub(crate) fn config(url: &str) -> PushConfig {
    PushConfig {
        tenant: None,
        id: None,
        task_id: None,
        url: url.to_owned(),
        token: None,
        authentication: None,
        payload: None,
    }
}
