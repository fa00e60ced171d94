//! Decides what is delivered when. One task of the runtime knows all that is to do; each delivery runs on its own and
//! reports back.
//!
//! What is to do comes from three places, and the store is behind all of them: the kernel says which tasks have grown,
//! the store says which deliveries are due, and now and then cursors are compared with tasks, which at the start finds
//! what an earlier process left and later on whatever a lost wake-up has left.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use switchboard_a2a::Timestamp;
use switchboard_egress::Egress;
use switchboard_engine::Engine;
use switchboard_engine::clock::{Clock, later};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::webhooks::{DeliveryKey, Due, Route, Signing, WebhookKey, WebhookStore};
use switchboard_engine::store::{Store, StoreError};
use tokio::sync::{Notify, mpsc};

use crate::Options;
use crate::endpoints::{Change, Endpoints, Health, Job, MOST_JOBS};
use crate::metric_definitions as metric;

/// How many rows are read at once.
const STEP: usize = 512;
/// How often cursors are compared with tasks.
const COMPARE_EVERY: Duration = Duration::from_secs(60);
/// How long to wait after the store could not be read.
const PAUSE: Duration = Duration::from_secs(1);

/// Webhooks. Clones share them.
#[derive(Clone)]
pub struct Webhooks {
    pub(crate) inner: Arc<Inner>,
}

/// What all parts share.
pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn WebhookStore>,
    pub(crate) egress: Egress,
    pub(crate) options: Options,
    pub(crate) secret: [u8; 32],
    pub(crate) signing: Mutex<Signing>,
    /// Tasks that have grown.
    news: Mutex<HashSet<TaskKey>>,
    /// Cursors are to be compared with tasks and all that is due read again.
    compare: AtomicBool,
    wake: Notify,
    /// What is paused, for whoever asks.
    pub(crate) paused: Mutex<Vec<(String, Timestamp)>>,
}

/// What became of a job.
pub(crate) struct Report {
    pub(crate) job: Job,
    pub(crate) endpoint: Arc<str>,
    pub(crate) health: Health,
    /// When there is more to do, as far as it is known.
    pub(crate) next: Option<Timestamp>,
}

impl Webhooks {
    /// Webhooks over a kernel and its store. Nothing is delivered before [`Self::start`].
    pub async fn new(
        engine: Engine,
        store: Arc<impl WebhookStore + Store>,
        egress: Egress,
        options: Options,
    ) -> Result<Self, StoreError> {
        let signing = store.signing().await?;
        let secret = store.secret();
        let inner = Inner {
            engine,
            store,
            egress,
            options,
            secret,
            signing: Mutex::new(signing),
            news: Mutex::default(),
            compare: AtomicBool::new(true),
            wake: Notify::new(),
            paused: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Begins to deliver, until the kernel stops.
    pub fn start(&self) {
        // Weakly, because the kernel is part of what it would hold.
        let told = Arc::downgrade(&self.inner);
        self.inner.engine.tell(Arc::new(move |task| {
            if let Some(told) = told.upgrade() {
                told.hear(task);
            }
        }));
        if self.inner.options.enabled {
            tokio::spawn(Dispatcher::new(Arc::clone(&self.inner)).run());
        }
        tokio::spawn(Arc::clone(&self.inner).tidy());
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        self.inner.engine.clock()
    }
}

impl Inner {
    /// A task has grown. Called in the middle of its commit's aftermath, so it only takes a note.
    fn hear(&self, task: TaskKey) {
        let mut news = self.news.lock();
        if news.len() < MOST_JOBS {
            news.insert(task);
        } else {
            self.compare.store(true, Ordering::Relaxed);
        }
        drop(news);
        self.wake.notify_one();
    }

    /// Has everything that is due looked for.
    pub(crate) fn look_again(&self) {
        self.compare.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.engine.clock().now()
    }
}

struct Dispatcher {
    inner: Arc<Inner>,
    endpoints: Endpoints,
    reports: mpsc::UnboundedReceiver<Report>,
    reporter: mpsc::UnboundedSender<Report>,
    /// Everything due up to here has been taken in.
    taken: Timestamp,
    /// When something is due next, as far as is known.
    next_due: Timestamp,
    compared: Timestamp,
}

impl Dispatcher {
    fn new(inner: Arc<Inner>) -> Self {
        let (reporter, reports) = mpsc::unbounded_channel();
        let endpoints = Endpoints::new(inner.options.clone());
        Self {
            inner,
            endpoints,
            reports,
            reporter,
            taken: Timestamp(0),
            next_due: Timestamp(0),
            compared: Timestamp(0),
        }
    }

    async fn run(mut self) {
        let closing = self.inner.engine.closing().clone();
        while !closing.is_cancelled() {
            let look = match self.take_in().await {
                Ok(next) => next,
                Err(StoreError::Closed) => return,
                Err(error) => {
                    tracing::warn!(%error, "what is to be delivered could not be read");
                    self.inner.compare.store(true, Ordering::Relaxed);
                    later(self.inner.now(), PAUSE)
                }
            };
            let now = self.inner.now();
            let next_try = self.endpoints.next_try(now);
            while let Some((job, endpoint)) = self.endpoints.start(now) {
                self.spawn(job, endpoint);
            }
            let look = next_try.map_or(look, |next_try| next_try.min(look));
            let inner = Arc::clone(&self.inner);
            tokio::select! {
                Some(report) = self.reports.recv() => self.hear(report),
                () = inner.wake.notified() => {}
                () = inner.engine.clock().sleep_until(look) => {}
                () = closing.cancelled() => return,
            }
            while let Ok(report) = self.reports.try_recv() {
                self.hear(report);
            }
        }
    }

    /// Takes in what is to do; says when to look again.
    async fn take_in(&mut self) -> Result<Timestamp, StoreError> {
        let now = self.inner.now();
        let due_for_comparison = later(self.compared, COMPARE_EVERY) <= now;
        if self.inner.compare.swap(false, Ordering::Relaxed) || due_for_comparison {
            (self.taken, self.next_due) = (Timestamp(0), Timestamp(0));
            self.compare().await?;
            self.compared = now;
        }
        self.take_news().await?;
        let next_comparison = later(self.compared, COMPARE_EVERY);
        if self.next_due <= now {
            self.take_due(now).await?;
            self.next_due = self.inner.store.next_due(now).await?.unwrap_or(next_comparison);
        }
        Ok(self.next_due.min(next_comparison))
    }

    async fn compare(&mut self) -> Result<(), StoreError> {
        let mut after = WebhookKey(0);
        while !self.endpoints.is_full() {
            let lagging = self.inner.store.lagging_webhooks(after, STEP).await?;
            let Some(last) = lagging.last() else { return Ok(()) };
            after = last.webhook;
            self.add(lagging);
        }
        // The rest waits until there is room.
        self.inner.compare.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn take_news(&mut self) -> Result<(), StoreError> {
        let news: Vec<TaskKey> = self.inner.news.lock().drain().collect();
        for some in news.chunks(STEP) {
            let reads = some.iter().map(|task| self.inner.store.active_webhooks(*task));
            for routes in futures_util::future::try_join_all(reads).await? {
                self.add(routes);
            }
        }
        Ok(())
    }

    async fn take_due(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let mut after = (self.taken, DeliveryKey(0));
        loop {
            if self.endpoints.is_full() {
                self.inner.compare.store(true, Ordering::Relaxed);
                return Ok(());
            }
            let due = self.inner.store.due_deliveries(after, now, STEP).await?;
            let Some(last) = due.last() else { break };
            after = (last.due_at, last.delivery);
            for Due { delivery, replay, route, .. } in due {
                let job = if replay { Job::Replay(delivery) } else { Job::Next(route.webhook) };
                // One that is known is on its way already.
                if !self.endpoints.knows(job) {
                    self.endpoints.add(job, &route.endpoint);
                }
            }
        }
        self.taken = now;
        Ok(())
    }

    fn add(&mut self, routes: Vec<Route>) {
        for Route { webhook, endpoint } in routes {
            self.endpoints.add(Job::Next(webhook), &endpoint);
        }
    }

    fn spawn(&self, job: Job, endpoint: Arc<str>) {
        let (inner, reporter) = (Arc::clone(&self.inner), self.reporter.clone());
        // On the kernel's own list, so that a stop waits a little for what is under way.
        self.inner.engine.spawn(async move {
            // Whatever happens in there, the place must come back.
            let performed = AssertUnwindSafe(inner.perform(job)).catch_unwind().await;
            let (health, next) = performed.unwrap_or_else(|_| {
                tracing::error!(?job, "a webhook's step panicked, this is a bug");
                (Health::Unknown, None)
            });
            // Nobody listens any more after a stop.
            let _ = reporter.send(Report { job, endpoint, health, next });
        });
    }

    fn hear(&mut self, report: Report) {
        let Report { job, endpoint, health, next } = report;
        let now = self.inner.now();
        // What became due while this was under way was passed over, because it was.
        let more = next.is_some_and(|next| next <= self.taken.max(now));
        self.next_due = next.map_or(self.next_due, |next| next.min(self.next_due));
        match self.endpoints.end(job, &endpoint, health, more, now) {
            Change::None => return,
            Change::Paused { until } => {
                tracing::warn!(endpoint = &*endpoint, %until, "an endpoint keeps failing and is paused");
            }
            Change::Recovered => {
                tracing::info!(endpoint = &*endpoint, "an endpoint answers again");
                self.release(&endpoint);
            }
        }
        let paused = self.endpoints.paused();
        metrics::gauge!(metric::PAUSED_ENDPOINTS).set(paused.len() as f64);
        *self.inner.paused.lock() = paused;
    }

    /// What waits for an endpoint that is back need not wait out its time.
    fn release(&self, endpoint: &str) {
        let inner = Arc::clone(&self.inner);
        let endpoint = endpoint.to_owned();
        self.inner.engine.spawn(async move {
            let now = inner.now();
            match inner.store.release_endpoint(&endpoint, now).await {
                Ok(0) => {}
                Ok(_) => inner.look_again(),
                Err(error) => tracing::warn!(%error, "deliveries to an endpoint that is back wait for their time"),
            }
        });
    }
}
