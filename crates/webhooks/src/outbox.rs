//! The outbox: a dispatcher that schedules the steps of webhooks. Each step runs on its own and reports back.
//!
//! Work comes from three sources, all backed by the store: the kernel names the tasks that have grown, the store names the
//! deliveries that are due, and from time to time cursors are compared with tasks. The first comparison finds what an
//! earlier process left, the later ones what a lost wake-up left.

#[cfg(test)]
pub(crate) mod tests;

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use switchboard_a2a::Timestamp;
use switchboard_admission::{FairSemaphore, Limits};
use switchboard_egress::Egress;
use switchboard_engine::clock::{Clock, later};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::webhooks::{DeliveryKey, Signing, WebhookKey, WebhookRoute, WebhookStore};
use switchboard_engine::{CallerId, Engine};
use tokio::sync::{Notify, Semaphore, mpsc};

use crate::Options;
use crate::body_budget::BodyBudget;
use crate::endpoints::{Change, Endpoints, Health, Started};
use crate::journal::{Happened, Journal};
use crate::log_cache::LogCache;
use crate::metric_definitions as metric;
use crate::retry_policy::latest_due;

/// Rows read at once.
const STEP: usize = 512;
/// How often cursors are compared with tasks.
const COMPARE_EVERY: Duration = Duration::from_secs(60);
const STORE_RETRY: Duration = Duration::from_secs(1);
/// The most grown tasks and paused endpoints held in memory; beyond that cursors are compared.
const MOST_NOTED: usize = 100_000;
/// Large bodies are rendered one at a time, because each takes a core for a while.
const RENDERED_AT_ONCE: usize = 1;
/// Concurrent DNS look-ups for one caller that sets webhooks.
const LOOKUP_LIMITS: Limits = Limits { total: usize::MAX, per_key: 16, always: 0 };

/// Webhooks. Clones share them.
#[derive(Clone)]
pub struct Webhooks {
    pub(crate) outbox: Arc<Outbox>,
}

/// The state shared by the dispatcher, its steps, the retention job and the service.
pub(crate) struct Outbox {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn WebhookStore>,
    pub(crate) egress: Egress,
    pub(crate) options: Options,
    pub(crate) secret: [u8; 32],
    pub(crate) signing: Mutex<Signing>,
    /// Tasks with new events.
    grown: Mutex<HashSet<TaskKey>>,
    /// All due deliveries are to be read again and cursors compared.
    rescan: AtomicBool,
    wake: Notify,
    /// Paused endpoints and the ends of their pauses, for the service.
    pub(crate) paused: Mutex<HashMap<Arc<str>, Timestamp>>,
    pub(crate) rendering: Semaphore,
    pub(crate) body_budget: BodyBudget,
    pub(crate) log_cache: LogCache,
    pub(crate) lookups: Arc<FairSemaphore<CallerId>>,
    /// Webhooks with a replay, which runs although their endpoint is paused.
    immediate: Mutex<Vec<WebhookRoute>>,
    /// Webhooks that got a permit for a large body.
    requeued: Mutex<Vec<WebhookRoute>>,
    /// Where what happens is written, if anywhere.
    pub(crate) journal: OnceLock<Journal>,
}

/// A step that has ended.
type StepReport = (Started, StepResult);

pub(crate) struct StepResult {
    pub(crate) health: Health,
    /// When the next step is due, if that is known.
    pub(crate) next: Option<Timestamp>,
    /// The current route, if the webhook has another endpoint by now.
    pub(crate) moved: Option<WebhookRoute>,
}

impl StepResult {
    /// The endpoint was not called.
    pub(crate) const NOTHING: Self = Self { health: Health::Unknown, next: None, moved: None };
}

impl Webhooks {
    /// Opens the outbox of a store. Nothing is delivered before [`Self::start`].
    pub async fn new(
        engine: Engine,
        store: Arc<dyn WebhookStore>,
        egress: Egress,
        options: Options,
    ) -> Result<Self, StoreError> {
        let signing = store.signing().await?;
        let secret = store.secret();
        let outbox = Outbox {
            engine,
            store,
            egress,
            options,
            secret,
            signing: Mutex::new(signing),
            grown: Mutex::default(),
            rescan: AtomicBool::new(true),
            wake: Notify::new(),
            paused: Mutex::default(),
            rendering: Semaphore::new(RENDERED_AT_ONCE),
            body_budget: BodyBudget::default(),
            log_cache: LogCache::default(),
            lookups: FairSemaphore::new(LOOKUP_LIMITS),
            immediate: Mutex::default(),
            requeued: Mutex::default(),
            journal: OnceLock::new(),
        };
        Ok(Self { outbox: Arc::new(outbox) })
    }

    /// Delivers until the kernel stops.
    pub fn start(&self) {
        // Weak, because the outbox holds the kernel.
        let outbox = Arc::downgrade(&self.outbox);
        self.outbox.engine.on_append(Arc::new(move |task| {
            if let Some(outbox) = outbox.upgrade() {
                outbox.task_grew(task);
            }
        }));
        if self.outbox.options.enabled {
            tokio::spawn(Dispatcher::new(Arc::clone(&self.outbox)).run());
        }
        tokio::spawn(Arc::clone(&self.outbox).run_retention());
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        self.outbox.engine.clock()
    }
}

impl Outbox {
    /// Called by the kernel after a commit, so it must be quick.
    fn task_grew(&self, task: TaskKey) {
        let mut grown = self.grown.lock();
        if grown.len() < MOST_NOTED {
            grown.insert(task);
        } else {
            self.rescan.store(true, Ordering::Relaxed);
        }
        drop(grown);
        self.wake.notify_one();
    }

    /// Makes the dispatcher read all due deliveries and compare cursors.
    pub(crate) fn rescan(&self) {
        self.rescan.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Serves a webhook next and ends the pause of its endpoint.
    pub(crate) fn try_now(&self, route: WebhookRoute) {
        self.immediate.lock().push(route);
        self.wake.notify_one();
    }

    /// Queues a webhook that had to wait for the body budget.
    pub(crate) fn requeue(&self, route: WebhookRoute) {
        self.requeued.lock().push(route);
        self.wake.notify_one();
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.engine.clock().now()
    }
}

struct Dispatcher {
    outbox: Arc<Outbox>,
    endpoints: Endpoints,
    reports: mpsc::UnboundedReceiver<StepReport>,
    reporter: mpsc::UnboundedSender<StepReport>,
    /// Deliveries due up to here are queued.
    taken: Timestamp,
    /// When the next delivery is due, as far as is known.
    next_due: Timestamp,
    /// When cursors were compared last.
    compared: Timestamp,
    /// The last reading of the clock.
    seen: Timestamp,
}

impl Dispatcher {
    fn new(outbox: Arc<Outbox>) -> Self {
        let (reporter, reports) = mpsc::unbounded_channel();
        let endpoints = Endpoints::new(outbox.options.clone());
        Self {
            outbox,
            endpoints,
            reports,
            reporter,
            taken: Timestamp(0),
            next_due: Timestamp(0),
            compared: Timestamp(0),
            seen: Timestamp(0),
        }
    }

    async fn run(mut self) {
        let closing = self.outbox.engine.closing().clone();
        while !closing.is_cancelled() {
            let look = match self.take_in().await {
                Ok(next) => next,
                Err(StoreError::Closed) => return,
                Err(error) => {
                    tracing::warn!(%error, "what is to be delivered could not be read");
                    self.outbox.rescan.store(true, Ordering::Relaxed);
                    later(self.outbox.now(), STORE_RETRY)
                }
            };
            let now = self.outbox.now();
            for route in self.outbox.requeued.lock().drain(..) {
                self.endpoints.add(route);
            }
            for route in self.outbox.immediate.lock().drain(..) {
                self.endpoints.try_now(route, now);
            }
            let next_probe = self.endpoints.end_pauses(now);
            self.drop_removed();
            while let Some(started) = self.endpoints.start(now) {
                self.spawn(started);
            }
            let look = next_probe.map_or(look, |next_probe| next_probe.min(look));
            let outbox = Arc::clone(&self.outbox);
            tokio::select! {
                Some(report) = self.reports.recv() => self.finish_step(report),
                () = outbox.wake.notified() => {}
                () = outbox.engine.clock().sleep_until(look) => {}
                () = closing.cancelled() => return,
            }
            while let Ok(report) = self.reports.try_recv() {
                self.finish_step(report);
            }
        }
    }

    /// Queues all work there is; returns when to look again.
    async fn take_in(&mut self) -> Result<Timestamp, StoreError> {
        let now = self.outbox.now();
        // After the clock was set back, nothing waits until it shows the same time again.
        let clock_was_set_back = now < self.seen;
        let due_for_comparison = later(self.compared, COMPARE_EVERY) <= now || clock_was_set_back;
        let compares = self.outbox.rescan.swap(false, Ordering::Relaxed) || due_for_comparison;
        if compares {
            (self.taken, self.next_due) = (Timestamp(0), Timestamp(0));
            self.compare_cursors().await?;
            self.compared = now;
        }
        self.take_grown().await?;
        let next_comparison = later(self.compared, COMPARE_EVERY);
        if self.next_due <= now {
            self.take_due(self.taken, now).await?;
            self.taken = now;
            self.next_due = self.outbox.store.next_due(now).await?.unwrap_or(next_comparison);
        }
        if compares {
            // After the clock was set back every pending delivery may be due, otherwise those that no backoff explains.
            let after = if clock_was_set_back { now } else { latest_due(&self.outbox.options.retries, now) };
            self.take_due(after, Timestamp(i64::MAX)).await?;
        }
        // Last: if the store fails, the next call must see again that the clock was set back.
        self.seen = now;
        Ok(self.next_due.min(next_comparison))
    }

    async fn compare_cursors(&mut self) -> Result<(), StoreError> {
        let mut after = WebhookKey(0);
        loop {
            let lagging = self.outbox.store.lagging_webhooks(after, STEP).await?;
            let Some(last) = lagging.last() else { return Ok(()) };
            after = last.webhook;
            lagging.into_iter().for_each(|route| self.endpoints.add(route));
        }
    }

    async fn take_grown(&mut self) -> Result<(), StoreError> {
        let grown: Vec<TaskKey> = self.outbox.grown.lock().drain().collect();
        for some in grown.chunks(STEP) {
            let reads = some.iter().map(|task| self.outbox.store.active_webhooks(*task));
            for routes in futures_util::future::try_join_all(reads).await? {
                routes.into_iter().for_each(|route| self.endpoints.add(route));
            }
        }
        Ok(())
    }

    /// Queues the deliveries that are due from one time to another.
    async fn take_due(&mut self, from: Timestamp, until: Timestamp) -> Result<(), StoreError> {
        let mut after = (from, DeliveryKey(0));
        loop {
            let due = self.outbox.store.due_deliveries(after, until, STEP).await?;
            let Some(last) = due.last() else { return Ok(()) };
            after = (last.due_at, last.delivery);
            due.into_iter().for_each(|due| self.endpoints.add(due.route));
        }
    }

    fn spawn(&self, started: Started) {
        let (outbox, reporter) = (Arc::clone(&self.outbox), self.reporter.clone());
        // Spawned by the kernel, so that a graceful shutdown waits a little for running steps.
        self.outbox.engine.spawn(async move {
            // A panic must not lose the job's slot.
            let performed = AssertUnwindSafe(outbox.perform(&started)).catch_unwind().await;
            let done = performed.unwrap_or_else(|_| {
                tracing::error!(webhook = started.job.0, "a webhook's step panicked, this is a bug");
                StepResult::NOTHING
            });
            // The dispatcher has gone after a shutdown.
            let _ = reporter.send((started, done));
        });
    }

    fn finish_step(&mut self, (started, done): StepReport) {
        let StepResult { health, next, moved } = done;
        let now = self.outbox.now();
        let more = next.is_some_and(|next| next <= now);
        if let Some(next) = next.filter(|_| !more) {
            self.next_due = self.next_due.min(next);
        }
        let change = self.endpoints.end(&started, health, more, now);
        if let Some(route) = moved {
            self.endpoints.add(route);
        }
        let endpoint = &started.endpoint;
        if self.endpoints.needs_refill(endpoint, &started.owner) {
            self.outbox.rescan();
        }
        if change == Change::None {
            return;
        }
        let mut paused = self.outbox.paused.lock();
        match change {
            Change::None => {}
            Change::Paused { until } => {
                tracing::warn!(endpoint = &**endpoint, %until, "an endpoint keeps failing and is paused");
                if paused.len() >= MOST_NOTED {
                    paused.retain(|_, until| *until > now);
                }
                // A failed probe makes a pause longer, which is no new one.
                if paused.insert(Arc::clone(endpoint), until).is_none() {
                    let more = serde_json::json!({ "until": until });
                    self.outbox.tell_of_endpoint(Happened::Paused, endpoint, more);
                }
            }
            Change::Recovered => {
                tracing::info!(endpoint = &**endpoint, "an endpoint answers again");
                if paused.remove(endpoint).is_some() {
                    self.outbox.tell_of_endpoint(Happened::Resumed, endpoint, serde_json::json!({}));
                }
                self.release(endpoint);
            }
        }
        metrics::gauge!(metric::PAUSED_ENDPOINTS).set(paused.len() as f64);
    }

    /// Drops the pauses of removed endpoints.
    fn drop_removed(&mut self) {
        let (forgotten, has_more) = self.endpoints.take_removed();
        if has_more {
            self.outbox.rescan();
        }
        if forgotten.is_empty() {
            return;
        }
        let mut paused = self.outbox.paused.lock();
        paused.retain(|endpoint, _| !forgotten.contains(endpoint));
        metrics::gauge!(metric::PAUSED_ENDPOINTS).set(paused.len() as f64);
    }

    /// Deliveries to an endpoint that has recovered need not wait out their backoff.
    fn release(&self, endpoint: &str) {
        let outbox = Arc::clone(&self.outbox);
        let endpoint = endpoint.to_owned();
        self.outbox.engine.spawn(async move {
            let now = outbox.now();
            match outbox.store.release_endpoint(&endpoint, now).await {
                Ok(_) => outbox.rescan(),
                Err(error) => tracing::warn!(%error, "deliveries to an endpoint that is back wait for their time"),
            }
        });
    }
}
