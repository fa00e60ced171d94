//! Decides what is delivered when. One task of the runtime knows all that is to do; each delivery runs on its own and
//! reports back.
//!
//! What is to do comes from three places, and the store is behind all of them: the kernel says which tasks have grown,
//! the store says which deliveries are due, and now and then cursors are compared with tasks, which at the start finds
//! what an earlier process left and later on whatever a lost wake-up has left.

use std::collections::{HashMap, HashSet};
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
use switchboard_engine::store::webhooks::{DeliveryKey, Route, Signing, WebhookKey, WebhookStore};
use switchboard_engine::store::{Store, StoreError};
use tokio::sync::{Notify, Semaphore, mpsc};

use crate::Options;
use crate::endpoints::{Change, Endpoints, Health, Started};
use crate::folds::Folds;
use crate::large::Large;
use crate::metric_definitions as metric;
use crate::schedule::latest_due;
use crate::shares::Shares;

/// How many rows are read at once.
const STEP: usize = 512;
/// How often cursors are compared with tasks.
const COMPARE_EVERY: Duration = Duration::from_secs(60);
/// How long to wait after the store could not be read.
const PAUSE: Duration = Duration::from_secs(1);
/// How many tasks that have grown are noted, and endpoints that are paused; beyond that they are looked for.
const MOST_NOTED: usize = 100_000;
/// Bodies are made one after the other: making a large one takes a core for a while.
const RENDERED_AT_ONCE: usize = 1;
/// How many names are looked up at a time for one caller that sets webhooks.
const LOOKUPS_PER_CALLER: usize = 16;

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
    pub(crate) paused: Mutex<HashMap<Arc<str>, Timestamp>>,
    pub(crate) rendering: Semaphore,
    pub(crate) large: Large,
    pub(crate) folds: Folds,
    pub(crate) lookups: Arc<Shares>,
    /// Webhooks that are to be served although their endpoint is paused, because an operator wants it.
    tries: Mutex<Vec<Route>>,
    /// Webhooks that there is room for now.
    lined_up: Mutex<Vec<Route>>,
}

/// What became of a job.
struct Report {
    started: Started,
    done: Done,
}

/// What a step came to.
pub(crate) struct Done {
    pub(crate) health: Health,
    /// When there is more to do, as far as it is known.
    pub(crate) next: Option<Timestamp>,
    /// Where the webhook goes by now, if not where the step was to go.
    pub(crate) moved: Option<Route>,
}

impl Done {
    /// Its endpoint was not asked.
    pub(crate) const NOTHING: Self = Self { health: Health::Unknown, next: None, moved: None };
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
            rendering: Semaphore::new(RENDERED_AT_ONCE),
            large: Large::default(),
            folds: Folds::default(),
            lookups: Shares::new(LOOKUPS_PER_CALLER),
            tries: Mutex::default(),
            lined_up: Mutex::default(),
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
        if news.len() < MOST_NOTED {
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

    /// Has a webhook served next, and its endpoint tried now instead of at the end of its pause.
    pub(crate) fn try_now(&self, route: Route) {
        self.tries.lock().push(route);
        self.wake.notify_one();
    }

    /// Has a webhook served that had to wait for room.
    pub(crate) fn line_up(&self, route: Route) {
        self.lined_up.lock().push(route);
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
    /// What the clock showed when it was last looked at.
    seen: Timestamp,
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
            seen: Timestamp(0),
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
            for route in self.inner.lined_up.lock().drain(..) {
                self.endpoints.add(route);
            }
            for route in self.inner.tries.lock().drain(..) {
                self.endpoints.try_now(route, now);
            }
            let next_try = self.endpoints.next_try(now);
            self.forget();
            while let Some(started) = self.endpoints.start(now) {
                self.spawn(started);
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
        // A clock that was set back is no reason to wait until it is there again.
        let turned_back = now < self.seen;
        let due_for_comparison = later(self.compared, COMPARE_EVERY) <= now || turned_back;
        let compares = self.inner.compare.swap(false, Ordering::Relaxed) || due_for_comparison;
        if compares {
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
        if compares {
            // Right after the clock was set back everything that waits may be due, later on what no wait explains.
            let after = if turned_back { now } else { latest_due(&self.inner.options.retries, now) };
            self.take_between(after, Timestamp(i64::MAX)).await?;
        }
        // Not before all that was done: what fails is done again, and the clock has been set back still.
        self.seen = now;
        Ok(self.next_due.min(next_comparison))
    }

    async fn compare(&mut self) -> Result<(), StoreError> {
        let mut after = WebhookKey(0);
        loop {
            let lagging = self.inner.store.lagging_webhooks(after, STEP).await?;
            let Some(last) = lagging.last() else { return Ok(()) };
            after = last.webhook;
            lagging.into_iter().for_each(|route| self.endpoints.add(route));
        }
    }

    async fn take_news(&mut self) -> Result<(), StoreError> {
        let news: Vec<TaskKey> = self.inner.news.lock().drain().collect();
        for some in news.chunks(STEP) {
            let reads = some.iter().map(|task| self.inner.store.active_webhooks(*task));
            for routes in futures_util::future::try_join_all(reads).await? {
                routes.into_iter().for_each(|route| self.endpoints.add(route));
            }
        }
        Ok(())
    }

    async fn take_due(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.take_between(self.taken, now).await?;
        self.taken = now;
        Ok(())
    }

    /// Takes in what waits for a time from one to another.
    async fn take_between(&mut self, from: Timestamp, until: Timestamp) -> Result<(), StoreError> {
        let mut after = (from, DeliveryKey(0));
        loop {
            let due = self.inner.store.due_deliveries(after, until, STEP).await?;
            let Some(last) = due.last() else { return Ok(()) };
            after = (last.due_at, last.delivery);
            due.into_iter().for_each(|due| self.endpoints.add(due.route));
        }
    }

    fn spawn(&self, started: Started) {
        let (inner, reporter) = (Arc::clone(&self.inner), self.reporter.clone());
        // On the kernel's own list, so that a stop waits a little for what is under way.
        self.inner.engine.spawn(async move {
            // Whatever happens in there, the place must come back.
            let performed = AssertUnwindSafe(inner.perform(&started)).catch_unwind().await;
            let done = performed.unwrap_or_else(|_| {
                tracing::error!(webhook = started.job.0, "a webhook's step panicked, this is a bug");
                Done::NOTHING
            });
            // Nobody listens any more after a stop.
            let _ = reporter.send(Report { started, done });
        });
    }

    fn hear(&mut self, report: Report) {
        let Report { started, done: Done { health, next, moved } } = report;
        let now = self.inner.now();
        let more = next.is_some_and(|next| next <= now);
        if let Some(next) = next.filter(|_| !more) {
            self.next_due = self.next_due.min(next);
        }
        let change = self.endpoints.end(&started, health, more, now);
        if let Some(route) = moved {
            self.endpoints.add(route);
        }
        let endpoint = &started.endpoint;
        if self.endpoints.wants_more(endpoint, &started.owner) {
            self.inner.look_again();
        }
        if change == Change::None {
            return;
        }
        let mut paused = self.inner.paused.lock();
        match change {
            Change::None => {}
            Change::Paused { until } => {
                tracing::warn!(endpoint = &**endpoint, %until, "an endpoint keeps failing and is paused");
                if paused.len() >= MOST_NOTED {
                    paused.retain(|_, until| *until > now);
                }
                paused.insert(Arc::clone(endpoint), until);
            }
            Change::Recovered => {
                tracing::info!(endpoint = &**endpoint, "an endpoint answers again");
                paused.remove(endpoint);
                self.release(endpoint);
            }
        }
        metrics::gauge!(metric::PAUSED_ENDPOINTS).set(paused.len() as f64);
    }

    /// What is no longer known is no longer paused.
    fn forget(&mut self) {
        let (forgotten, has_more) = self.endpoints.forgotten();
        if has_more {
            self.inner.look_again();
        }
        if forgotten.is_empty() {
            return;
        }
        let mut paused = self.inner.paused.lock();
        paused.retain(|endpoint, _| !forgotten.contains(endpoint));
        metrics::gauge!(metric::PAUSED_ENDPOINTS).set(paused.len() as f64);
    }

    /// What waits for an endpoint that is back need not wait out its time.
    fn release(&self, endpoint: &str) {
        let inner = Arc::clone(&self.inner);
        let endpoint = endpoint.to_owned();
        self.inner.engine.spawn(async move {
            let now = inner.now();
            match inner.store.release_endpoint(&endpoint, now).await {
                Ok(_) => inner.look_again(),
                Err(error) => tracing::warn!(%error, "deliveries to an endpoint that is back wait for their time"),
            }
        });
    }
}
