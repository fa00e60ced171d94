//! The periodic sweep: question timeouts, deadlines of queued tasks, and retention (eviction of ended tasks).

use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::{TaskState, Timestamp};

use crate::clock::earlier;
use crate::engine::{Engine, EngineState, state_label};
use crate::error::Error;
use crate::expiry::Expired;
use crate::feed::FeedClient;
use crate::ids::TaskKey;
use crate::live_task::Core;
use crate::metric_definitions as metric;
use crate::reason::Reason;
use crate::store::feed::JournalRetention;
use crate::store::{Retention, TaskRow};

/// How often the sweep runs.
const SWEEP_PERIOD: Duration = Duration::from_secs(1);
/// Every how many sweeps it also evicts.
const SWEEPS_PER_EVICTION: u32 = 30;
/// How many tasks one step takes, so that no transaction is long.
const STEP: usize = 200;
/// How many of the oldest ended tasks are looked at for those that wait for a consumer, because reading the metrics has to
/// stay cheap. The description of the metric names it.
const LOOKED_AT_FOR_HOLDS: usize = 1_000;
/// The states a stored task can be in.
const STATES: [TaskState; 8] = [
    TaskState::Submitted,
    TaskState::Working,
    TaskState::InputRequired,
    TaskState::AuthRequired,
    TaskState::Completed,
    TaskState::Failed,
    TaskState::Canceled,
    TaskState::Rejected,
];

impl EngineState {
    pub(crate) fn spawn_sweeper(self: &Arc<Self>) {
        let engine = self.clone();
        tokio::spawn(async move {
            let mut looks = 0u32;
            loop {
                tokio::select! {
                    () = engine.clock.sleep(SWEEP_PERIOD) => {}
                    () = engine.closing.cancelled() => return,
                }
                engine.expire().await;
                looks = (looks + 1) % SWEEPS_PER_EVICTION;
                if looks == 0 {
                    if engine.is_shared {
                        // Another node may have deleted what is cached here.
                        engine.terminal_tasks.clear();
                        engine.recount_parked().await;
                    }
                    engine.evict().await;
                    engine.live.all();
                    engine.sightings.prune(engine.clock.monotonic(), engine.settings.parked_expiry);
                }
            }
        });
    }

    /// Counts the parked tasks anew: of those that other nodes park and answer this one hears nothing.
    async fn recount_parked(&self) {
        match self.store.census().await {
            Ok(census) => self.admission.count_parked(census.parked),
            Err(error) => tracing::warn!(%error, "parked tasks could not be counted"),
        }
    }

    /// Fails the tasks whose question timeout or deadline has passed.
    async fn expire(self: &Arc<Self>) {
        let now = self.clock.now();
        let mut after = (Timestamp(0), TaskKey(0));
        loop {
            let rows = match self.store.expired(now, after, STEP).await {
                Ok(rows) => rows,
                Err(error) => return tracing::warn!(%error, "expired tasks could not be read"),
            };
            let Some(last) = rows.last() else { return };
            after = (last.state.expires_at.unwrap_or(now), last.key);
            for row in rows {
                let id = row.task.id.clone();
                // One that cannot be read must not hold up the others.
                if let Err(error) = self.expire_one(row).await {
                    tracing::warn!(task = %id, %error, "a task could not be expired");
                }
            }
        }
    }

    async fn expire_one(self: &Arc<Self>, row: TaskRow) -> Result<(), Error> {
        let Some(live) = self.find_task(&row.task.id).await? else { return Ok(()) };
        let engine = self.clone();
        let ended = self.work.spawn(async move {
            let now = engine.clock.now();
            let expired = engine.expired(&live, &live.core.lock(), now);
            let (reason, text) = match expired {
                Expired::Decided(verdict, question) => return engine.decide_by_time(live, verdict, question).await,
                // Another node may serve its agent and decide.
                Expired::Waits(_) if live.hosted.is_none() && engine.is_shared => return Ok(()),
                Expired::Waits(_) => return engine.postpone_expiry(&live).await,
                Expired::Fails(reason @ Reason::TimedOut) => (reason, "the task took too long"),
                Expired::Fails(reason) => (reason, "no answer came in time"),
            };
            engine.link_children_of_parked(&live).await;
            // The answer may have come since the row was read, and memory may not have had the question yet.
            let due = |core: &Core| {
                let waits = core.row.state.is_interrupted() || core.row.phase.is_queued();
                let is_over = core.row.expires_at.is_some_and(|at| at <= now);
                waits && is_over && engine.expired(&live, core, now) == Expired::Fails(reason)
            };
            let ended = engine.end(&live, TaskState::Failed, Some(text.to_owned()), reason, due).await;
            if live.core.lock().is_done() {
                engine.admission.withdraw(&live);
            }
            ended
        });
        ended.await.unwrap_or(Ok(()))
    }

    fn retention(&self) -> Retention {
        Retention {
            ended_before: earlier(self.clock.now(), self.settings.retention_age),
            max_tasks: self.settings.retention_tasks,
            max_bytes: self.settings.retention_bytes,
            hold_since: earlier(self.clock.now(), self.settings.consumer_hold),
        }
    }

    async fn evict_journal(&self) {
        let retention = JournalRetention {
            before: earlier(self.clock.now(), self.settings.journal_age),
            audit_before: earlier(self.clock.now(), self.settings.audit_age),
        };
        loop {
            match self.store.evict_journal(retention, STEP).await {
                Ok(count) if count < STEP => return,
                Ok(_) => {}
                Err(error) => return tracing::warn!(%error, "old journal lines could not be deleted"),
            }
        }
    }

    async fn evict(&self) {
        self.evict_journal().await;
        loop {
            match self.store.evict(self.retention(), STEP).await {
                Ok(0) => return,
                Ok(count) => {
                    self.terminal_tasks.clear();
                    metrics::counter!(metric::EVICTED_TASKS).increment(count as u64);
                }
                Err(error) => return tracing::warn!(%error, "ended tasks could not be deleted"),
            }
        }
    }
}

impl Engine {
    /// Brings the gauges up to date; called when metrics are read.
    pub async fn measure(&self) {
        let admission = &self.inner.admission;
        metrics::gauge!(metric::RUNNING_TURNS).set(admission.running.held() as f64);
        metrics::gauge!(metric::REMOTE_TURNS).set(admission.remote.held() as f64);
        metrics::gauge!(metric::WAITING_TURNS).set(admission.released.held() as f64);
        metrics::gauge!(metric::QUEUED_TURNS).set(admission.queued.held() as f64);
        let ring = &self.inner.feed_ring;
        let (streams, websockets) = (ring.clients(FeedClient::Stream), ring.clients(FeedClient::WebSocket));
        metrics::gauge!(metric::FEED_READERS, "kind" => "stream").set(streams as f64);
        metrics::gauge!(metric::FEED_READERS, "kind" => "websocket").set(websockets as f64);
        let consumers = ring.readers().saturating_sub(streams + websockets);
        metrics::gauge!(metric::FEED_READERS, "kind" => "consumer").set(consumers as f64);
        metrics::gauge!(metric::TASKS_IN_MEMORY).set(self.tasks_in_memory() as f64);
        if let Ok(census) = self.inner.store.census().await {
            for state in STATES {
                // The store tells only states that some task has; the others have become empty.
                let found = census.by_state.iter().find(|(counted, _)| *counted == state);
                let count = found.map_or(0, |(_, count)| *count);
                metrics::gauge!(metric::TASKS, "state" => state_label(state)).set(count as f64);
            }
        }
        if let Ok(held) = self.inner.store.held_by_consumers(self.retention(), LOOKED_AT_FOR_HOLDS).await {
            metrics::gauge!(metric::EVICTION_HELD_TASKS).set(held as f64);
        }
    }

    /// How long ended tasks are kept, as of now.
    pub fn retention(&self) -> Retention {
        self.inner.retention()
    }

    /// How many tasks are held in memory.
    pub fn tasks_in_memory(&self) -> usize {
        self.inner.live.all().len()
    }

    /// How many open questions that approve themselves are held in memory.
    pub fn questions_in_memory(&self) -> usize {
        self.inner.sightings.len()
    }

    /// Expires questions and deletes what retention says to delete, now.
    pub async fn sweep(&self) {
        self.inner.expire().await;
        self.inner.evict().await;
    }
}
