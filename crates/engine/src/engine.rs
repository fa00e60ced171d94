//! The state that all operations of the kernel share, and its start.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use switchboard_a2a::{TaskId, TaskState, Timestamp};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::Admission;
use crate::bus::{Announcement, Bus};
use crate::caller::{Caller, Callers};
use crate::clock::Clock;
use crate::cooldowns::RunningCooldowns;
use crate::delegation::RefusalListener;
use crate::directory::{Address, Directory};
use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::expiry::QuestionSightings;
use crate::feed::FeedRing;
use crate::fold::{LogFold, task_line};
use crate::history_cache::HistoryCache;
use crate::idempotency::KeyReservations;
use crate::ids::{AgentName, CallerId, Seq, TaskKey};
use crate::live_task::{Core, LiveTask};
use crate::live_tasks::{Insertions, LiveTasks};
use crate::metric_definitions as metric;
use crate::reason::Reason;
use crate::settings::Settings;
use crate::sha256::sha256;
use crate::store::{LoadedTask, Phase, Store, StoreError, TaskHead, TaskIdentity, TaskRow};
use crate::terminal_task_cache::TerminalTaskCache;
use crate::webhook::AppendListener;

/// Heads of tasks that are read at a time.
const HEADS: usize = 500;

/// The kernel. Clones share it.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<EngineState>,
}

/// What all operations share.
pub(crate) struct EngineState {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    /// Other nodes may write to the store ([`Store::is_shared`]).
    pub(crate) is_shared: bool,
    /// They hear of appends here.
    pub(crate) bus: Option<Arc<dyn Bus>>,
    pub(crate) live: LiveTasks,
    pub(crate) admission: Admission,
    /// What each decision of recovery takes one of (`Settings::parallel_recoveries`), whichever agent is asked.
    pub(crate) recovery_slots: Semaphore,
    /// Tasks whose recovery is under way.
    pub(crate) recovering: Mutex<HashSet<TaskKey>>,
    pub(crate) key_reservations: Arc<KeyReservations>,
    pub(crate) history_cache: HistoryCache,
    pub(crate) terminal_tasks: TerminalTaskCache,
    pub(crate) sightings: QuestionSightings,
    pub(crate) cooldowns: RunningCooldowns,
    /// The newest rows, while they are read.
    pub(crate) feed_ring: FeedRing,
    /// Set when a shutdown begins: no new work.
    pub(crate) closing: CancellationToken,
    /// Set when a shutdown begins to mark turns that have not ended: from now on no turn is claimed, and no task begun. A
    /// writer looks under the task's `writing` lock, so that a mark comes after every claim.
    pub(crate) interrupting: CancellationToken,
    /// Set when a shutdown has marked them: watchers end.
    pub(crate) drained: CancellationToken,
    /// Everything that writes: turns and inbox appends. A shutdown waits for these.
    pub(crate) work: TaskTracker,
    /// Notified of appends to tasks with webhooks.
    pub(crate) listener: OnceLock<AppendListener>,
    /// This server in delegation chains.
    pub(crate) node_id: String,
    /// Notified of calls that the guard refuses.
    pub(crate) refusals: OnceLock<RefusalListener>,
    /// What callers may do now, where that is asked later than their request.
    pub(crate) callers: OnceLock<Arc<dyn Callers>>,
}

impl Engine {
    /// Starts the kernel: recovery of an earlier process's tasks, and the sweep.
    pub async fn start(
        store: Arc<dyn Store>,
        directory: Arc<dyn Directory>,
        clock: Arc<dyn Clock>,
        settings: Settings,
    ) -> Result<Self, StoreError> {
        let (bus, is_shared) = (store.bus(), store.is_shared());
        let admission = Admission::new(&settings);
        let recovery_slots = Semaphore::new(settings.parallel_recoveries.clamp(1, Semaphore::MAX_PERMITS));
        let feed_ring = FeedRing::new(settings.feed_ring_bytes);
        let node_id = node_id(&store.secret());
        let inner = Arc::new(EngineState {
            store,
            directory,
            clock,
            settings,
            bus,
            is_shared,
            live: LiveTasks::default(),
            admission,
            recovery_slots,
            recovering: Mutex::default(),
            key_reservations: Arc::default(),
            history_cache: HistoryCache::default(),
            terminal_tasks: TerminalTaskCache::default(),
            sightings: QuestionSightings::default(),
            cooldowns: RunningCooldowns::default(),
            feed_ring,
            closing: CancellationToken::new(),
            interrupting: CancellationToken::new(),
            drained: CancellationToken::new(),
            work: TaskTracker::new(),
            listener: OnceLock::new(),
            node_id,
            refusals: OnceLock::new(),
            callers: OnceLock::new(),
        });
        let census = inner.store.census().await?;
        inner.admission.count_parked(census.parked);
        inner.spawn_bus_listener();
        inner.start_recovery().await;
        inner.spawn_sweeper();
        Ok(Self { inner })
    }

    /// Says where to look up what callers may do. Only the first one counts; without it `delegation.scope: both` refuses
    /// every call.
    pub fn set_callers(&self, callers: Arc<dyn Callers>) {
        if self.inner.callers.set(callers).is_err() {
            tracing::warn!("the callers are already known");
        }
    }

    /// The agents that are served.
    pub fn directory(&self) -> &Arc<dyn Directory> {
        &self.inner.directory
    }

    /// The clock everything runs by.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// Resolves when the server is stopping and takes no new work; what runs may still end.
    pub fn closing(&self) -> &CancellationToken {
        &self.inner.closing
    }

    /// Whether new work would be accepted; what is in the way if not.
    pub fn ready(&self) -> Result<(), Error> {
        if self.inner.closing.is_cancelled() {
            return Err(shutting_down());
        }
        Ok(self.inner.store.ready()?)
    }
}

/// The id of a store: made with its secret, which cannot be told from it.
fn node_id(secret: &[u8; 32]) -> String {
    let hash = sha256([b"node id".as_slice(), secret.as_slice()]);
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The error of requests during a shutdown.
pub(crate) fn shutting_down() -> Error {
    Error::Unavailable { problem: "the server is stopping".to_owned(), retry_after_ms: 5_000 }
}

impl EngineState {
    /// A task that the caller may see at this address, in memory while it is held.
    pub(crate) async fn open(&self, address: &Address, caller: &Caller, id: &TaskId) -> Result<Arc<LiveTask>, Error> {
        let live = match self.live.find(id) {
            Ok(live) => {
                self.refresh(&live).await?;
                live
            }
            Err(insertions) => {
                let loaded = self.store.load(id).await?;
                let seen = loaded.filter(|loaded| visible(address, caller, &loaded.row.task, loaded.row.state.hidden));
                self.adopt(seen.ok_or_else(|| Error::TaskNotFound(id.clone()))?, insertions).await?
            }
        };
        let hidden = live.core.lock().row.hidden;
        if visible(address, caller, &live.task, hidden) { Ok(live) } else { Err(Error::TaskNotFound(id.clone())) }
    }

    /// A task in memory; loaded from the store if it is not there yet.
    pub(crate) async fn find_task(&self, id: &TaskId) -> Result<Option<Arc<LiveTask>>, Error> {
        let insertions = match self.live.find(id) {
            Ok(live) => {
                self.refresh(&live).await?;
                return Ok(Some(live));
            }
            Err(insertions) => insertions,
        };
        match self.store.load(id).await? {
            Some(loaded) => self.adopt(loaded, insertions).await.map(Some),
            None => Ok(None),
        }
    }

    /// The row of a task that the caller may see at this address.
    pub(crate) async fn visible_row(&self, address: &Address, caller: &Caller, id: &TaskId) -> Result<TaskRow, Error> {
        let row = self.store.row(id).await?;
        let seen = row.filter(|row| visible(address, caller, &row.task, row.state.hidden));
        seen.ok_or_else(|| Error::TaskNotFound(id.clone()))
    }

    /// Brings a loaded task into memory; the one already there wins. Ended tasks are not shared: they never change.
    async fn adopt(&self, loaded: LoadedTask, before: Insertions) -> Result<Arc<LiveTask>, Error> {
        let done = loaded.row.state.phase == Phase::Done;
        let hosted = self.directory.find(&loaded.row.task.agent);
        let task = Arc::new(loaded.row.task.clone());
        let core = self.fold_loaded(loaded)?;
        let live = Arc::new(LiveTask::with_core(task, hosted, core));
        if done {
            return Ok(live);
        }
        let shared = self.live.insert_loaded(live, before);
        if let Some(key) = shared.core.lock().key.filter(|_| self.is_shared) {
            self.live.index(key, &shared);
        }
        // Between the load and the insertion another request or another node may have changed it.
        self.refresh(&shared).await?;
        Ok(shared)
    }

    /// The fold of a stored task.
    pub(crate) fn fold_log(&self, loaded: &LoadedTask) -> Result<LogFold, Error> {
        self.fold_parts(loaded, true)
    }

    /// The same, or what is left of it without its artifacts.
    pub(crate) fn fold_parts(&self, loaded: &LoadedTask, artifacts: bool) -> Result<LogFold, Error> {
        let mut log = match &loaded.snapshot {
            Some(snapshot) => LogFold::from_snapshot(&loaded.row.task, snapshot)?,
            None => LogFold::new(&loaded.row.task),
        };
        log.artifacts = artifacts;
        for event_row in &loaded.events {
            log.apply(event_row, Seq(u64::MAX))?;
        }
        Ok(log)
    }

    pub(crate) fn fold_loaded(&self, loaded: LoadedTask) -> Result<Core, Error> {
        let log = self.fold_log(&loaded)?;
        let LoadedTask { row, snapshot, events } = loaded;
        let ended = (row.state.phase == Phase::Done).then(|| match &snapshot {
            Some((_, _, snapshot)) if events.is_empty() => task_line(snapshot),
            _ => log.fold.task_json(),
        });
        let mut core = Core::new(Some(row.key), log.fold, row.state, row.last_seq, row.bytes);
        core.watched = row.watched;
        core.holder = row.holder;
        core.last_epoch = log.epoch.unwrap_or_default();
        core.since_snapshot = events.iter().map(|row| row.events.len()).sum();
        core.snapshot_bytes = log.snapshot_bytes;
        core.ended_json = ended;
        core.output.stop = core.fold.kernel.cancel_requested.then_some(Reason::CanceledByCaller);
        Ok(core)
    }

    /// Tells of a commit: the webhooks of the task, and the other nodes.
    pub(crate) fn tell_of_append(&self, key: TaskKey, watched: bool) {
        if watched {
            self.notify_listener(key);
        }
        if let Some(bus) = &self.bus {
            bus.announce(key);
        }
    }

    /// Lets tasks in memory follow what other nodes announce.
    fn spawn_bus_listener(self: &Arc<Self>) {
        let Some(mut announcements) = self.bus.as_ref().map(|bus| bus.listen()) else { return };
        let engine = self.clone();
        tokio::spawn(async move {
            loop {
                let heard = tokio::select! {
                    heard = announcements.next() => heard,
                    () = engine.drained.cancelled() => return,
                };
                let changed = match heard {
                    Some(Announcement::Task(key)) => engine.live.by_key(key).into_iter().collect(),
                    Some(Announcement::Any) => engine.changed_elsewhere().await,
                    None => return,
                };
                for live in changed {
                    // One that has not begun to read yet will read this append too.
                    if !live.catch_up_due.swap(true, Ordering::AcqRel) {
                        engine.work.spawn(engine.clone().catch_up_announced(live));
                    }
                }
            }
        });
    }

    /// The tasks in memory that are not as the store has them: few, where many would have to be read.
    async fn changed_elsewhere(&self) -> Vec<Arc<LiveTask>> {
        let mut known = self.live.all();
        let keys: Vec<TaskKey> = known.iter().filter_map(|live| live.core.lock().key).collect();
        let mut heads = HashMap::with_capacity(keys.len());
        for some in keys.chunks(HEADS) {
            match self.store.heads(some.to_vec()).await {
                Ok(found) => heads.extend(found.into_iter().map(|head| (head.key, head))),
                Err(error) => {
                    tracing::warn!(%error, "it could not be read which tasks have changed elsewhere");
                    return known;
                }
            }
        }
        known.retain(|live| {
            let core = live.core.lock();
            let Some(key) = core.key else { return false };
            let (last_seq, fence, phase, holder) = (core.last_seq, core.row.fence, core.row.phase, core.holder);
            heads.get(&key) != Some(&TaskHead { key, last_seq, fence, phase, holder })
        });
        known
    }

    async fn catch_up_announced(self: Arc<Self>, live: Arc<LiveTask>) {
        let _writing = live.writing.lock().await;
        live.catch_up_due.store(false, Ordering::Release);
        if let Err(error) = live.catch_up(&self).await {
            return tracing::warn!(task = %live.task.id, %error, "a task that changed elsewhere could not be read");
        }
        let core = live.core.lock();
        let cannot_wait_here = core.turn.driven().is_none() && !core.row.phase.is_queued();
        let watched = core.key.filter(|_| core.watched);
        drop(core);
        if cannot_wait_here {
            self.admission.withdraw(&live);
        }
        if let Some(key) = watched {
            self.notify_listener(key);
        }
    }

    /// Records the duration of tasks that a commit has ended.
    pub(crate) fn record_metrics(&self, task: &TaskIdentity, core: &Core, events: &[Event]) {
        for event in events {
            let EventKind::Status(state) = event.kind() else { continue };
            if state.is_terminal() {
                let began = uuid_time(&task.id).unwrap_or(core.row.status_at);
                let seconds = (core.row.status_at.0 - began.0).max(0) as f64 / 1_000.0;
                metrics::histogram!(metric::TASK_DURATION, "state" => state_label(state)).record(seconds);
            }
        }
    }

    pub(crate) fn count_refused_write(&self) {
        metrics::counter!(metric::REFUSED_WRITES).increment(1);
    }
}

/// Whether a caller may see a task at an address.
pub(crate) fn visible(address: &Address, caller: &Caller, task: &TaskIdentity, hidden: bool) -> bool {
    is_visible(address, caller, &task.owner, &task.agent, task.parent()) && !hidden
}

/// The same of a task that is not hidden.
pub(crate) fn is_visible(
    address: &Address,
    caller: &Caller,
    owner: &CallerId,
    agent: &AgentName,
    parent: Option<TaskKey>,
) -> bool {
    let agents = &caller.scopes.agents;
    *owner == caller.id && address.shows(agent) && agents.allows(agent) && agents.sees_child_of(parent)
}

/// When a time-ordered id was made.
fn uuid_time(id: &TaskId) -> Option<Timestamp> {
    let uuid: uuid::Uuid = id.as_str().parse().ok()?;
    let (seconds, nanoseconds) = uuid.get_timestamp()?.to_unix();
    Some(Timestamp(i64::try_from(seconds).ok()? * 1_000 + i64::from(nanoseconds / 1_000_000)))
}

/// A state as a metric label.
pub fn state_label(state: TaskState) -> &'static str {
    match state {
        TaskState::Unspecified => "unspecified",
        TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::Completed => "completed",
        TaskState::Failed => "failed",
        TaskState::Canceled => "canceled",
        TaskState::InputRequired => "input_required",
        TaskState::Rejected => "rejected",
        TaskState::AuthRequired => "auth_required",
    }
}
