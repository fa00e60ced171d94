//! Admission: how many turns run at the same time, in total, per agent and per caller.
//!
//! A run permit costs two counters, that of the process and the caller behind one lock. Only when a limit is reached does a
//! turn go into the queue; every permit that is given back looks there.
//!
//! A permit is released when the agent has produced its last output, before that is committed, so that commit latency
//! does not count against the limits. A message that arrives in that moment needs a permit again, and is queued if
//! there is none.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use switchboard_a2a::Timestamp;
use switchboard_admission::{Counter, CounterPermit, KeyedCounter, KeyedPermit};

use crate::directory::Hosted;
use crate::engine::EngineState;
use crate::error::Error;
use crate::ids::CallerId;
use crate::live_task::LiveTask;
use crate::manifest::Execution;
use crate::queue::{Queue, QueuePriority};
use crate::settings::Settings;
use crate::store::TaskIdentity;

/// Counts and queue of a process.
pub(crate) struct Admission {
    pub(crate) running: KeyedCounter<CallerId>,
    /// Turns that only follow a task on another server.
    pub(crate) remote: KeyedCounter<CallerId>,
    /// Turns that have begun and wait for others without a permit.
    pub(crate) released: Counter,
    /// Turns that run or still have output to commit, and do not only wait; a shutdown waits for these.
    pub(crate) busy: Counter,
    /// Queue slots, those included whose task is still on its way into the log.
    pub(crate) queued: Counter,
    /// Tasks that wait for an answer. The store keeps them, so they are counted without permits.
    pub(crate) parked: KeyedCounter<CallerId>,
    queue: Mutex<Queue>,
    /// How often queued turns were to be started since one thread began to do so.
    starting: AtomicUsize,
}

/// A permit to run. Dropping it starts the next queued turn.
pub(crate) struct Permit {
    engine: Weak<EngineState>,
    /// Of the process and the caller, and of the agent.
    running: Option<(KeyedPermit<CallerId>, CounterPermit)>,
    /// A shutdown waits for the turn from the moment it has its permit.
    pub(crate) busy: CounterPermit,
}

/// A turn that was taken out of the queue because there is a permit for it.
pub(crate) struct StartableTurn {
    pub(crate) live: Arc<LiveTask>,
    pub(crate) permit: Permit,
    pub(crate) queued_at: Timestamp,
}

/// How a message's turn goes on once the message is in the log.
pub(crate) enum Admitted {
    Runs(Permit),
    Queued(CounterPermit),
}

impl Admission {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            running: KeyedCounter::new(settings.running_tasks, settings.running_per_caller),
            remote: KeyedCounter::new(settings.remote_tasks, settings.running_per_caller),
            released: Counter::default(),
            busy: Counter::default(),
            queued: Counter::default(),
            parked: KeyedCounter::new(settings.parked_tasks, settings.parked_per_caller),
            queue: Mutex::default(),
            starting: AtomicUsize::default(),
        }
    }

    /// What the turns of an agent count against, besides the limit of the agent.
    fn turns_of(&self, hosted: &Hosted) -> &KeyedCounter<CallerId> {
        match hosted.execution() {
            Execution::Local => &self.running,
            Execution::Remote => &self.remote,
        }
    }

    /// The store's counts of parked tasks replace those of this process.
    pub(crate) fn count_parked(&self, parked: Vec<(CallerId, u64)>) {
        let count = |count| usize::try_from(count).unwrap_or(usize::MAX);
        self.parked.replace(parked.into_iter().map(|(caller, parked)| (caller, count(parked))));
    }

    /// Where a task waits: 1 is next.
    pub(crate) fn position(&self, live: &LiveTask) -> Option<usize> {
        self.queue.lock().position(live)
    }

    pub(crate) fn enqueue(&self, priority: QueuePriority, live: Arc<LiveTask>, since: Timestamp, slot: CounterPermit) {
        self.queue.lock().push(priority, live, since, slot);
    }

    pub(crate) fn is_queued(&self, live: &LiveTask) -> bool {
        live.queue_number.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn withdraw(&self, live: &LiveTask) {
        self.queue.lock().remove(live);
    }
}

impl EngineState {
    /// Load shedding: whether a message's turn may run now, has to queue, or is refused. That of a child task is not
    /// refused: the turn that waits for it could neither go on nor leave.
    pub(crate) fn admit(self: &Arc<Self>, hosted: &Arc<Hosted>, task: &TaskIdentity) -> Result<Admitted, Error> {
        if !task.is_child() && self.has_too_many_released(hosted) {
            return Err(Error::retry_soon("too many turns of this agent wait for each other"));
        }
        let is_recovering = hosted.recovering.held() > 0;
        if !is_recovering && let Some(permit) = self.try_permit(hosted, task.payer()) {
            return Ok(Admitted::Runs(permit));
        }
        if task.is_child() {
            return Ok(Admitted::Queued(self.admission.queued.acquire()));
        }
        if let Some(slot) = self.admission.queued.try_acquire(self.settings.queued_turns) {
            return Ok(Admitted::Queued(slot));
        }
        // A permit given back while this one was counted may have found the limit still reached.
        self.start_queued();
        Err(Error::retry_soon(match is_recovering {
            true => "what was left before a restart goes on first, and the queue is full",
            false => "every slot for running turns is taken and the queue is full",
        }))
    }

    /// Refuses a new task while too many wait for an answer.
    pub(crate) fn check_parked(&self, caller: &CallerId) -> Result<(), Error> {
        let refused = |_| Error::retry_soon("too many tasks wait for an answer; answer or cancel some");
        self.admission.parked.check(caller).map_err(refused)
    }

    /// A permit for a turn, if no limit of its agent or its payer is reached.
    pub(crate) fn try_permit(self: &Arc<Self>, hosted: &Hosted, payer: &CallerId) -> Option<Permit> {
        let of_payer = self.admission.turns_of(hosted).try_acquire(payer).ok()?;
        let Some(of_agent) = hosted.running.try_acquire(hosted.max_running(self.settings.running_per_agent)) else {
            drop(of_payer);
            // While it was counted, a queued turn of another agent may have found the limit reached.
            self.start_queued();
            return None;
        };
        let running = Some((of_payer, of_agent));
        Some(Permit { engine: Arc::downgrade(self), running, busy: self.admission.busy.acquire() })
    }

    /// Starts queued turns in order while no limit is reached; one whose agent or caller is at its limit lets others pass.
    ///
    /// Only one thread does so at a time, and looks again for the others. A permit that is given back while a turn is
    /// being started, as when the runtime no longer takes work, must not come back in here.
    pub(crate) fn start_queued(self: &Arc<Self>) {
        let starting = &self.admission.starting;
        if self.admission.queued.held() == 0 || self.closing.is_cancelled() {
            return;
        }
        if starting.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        loop {
            let asked = starting.load(Ordering::Acquire);
            // One lane's turns begin one after the other: some of them wait for each other, in this order.
            let mut lanes: HashMap<_, Vec<_>> = HashMap::new();
            for turn in self.take_startable() {
                let task = &turn.live.task;
                let lane = (task.agent.clone(), task.payer().clone());
                lanes.entry(lane).or_default().push(turn);
            }
            for turns in lanes.into_values() {
                self.spawn_queued(turns);
            }
            if starting.compare_exchange(asked, 0, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return;
            }
        }
    }

    fn take_startable(self: &Arc<Self>) -> Vec<StartableTurn> {
        let settings = &self.settings;
        // The common case, found out once instead of for every lane.
        let is_full = self.admission.running.held() >= settings.running_tasks;
        let is_admitted = |caller: &CallerId, hosted: &Hosted| {
            (!is_full || hosted.execution() == Execution::Remote)
                && hosted.recovering.held() == 0
                && hosted.running.held() < hosted.max_running(settings.running_per_agent)
                && self.admission.turns_of(hosted).check(caller).is_ok()
        };
        let mut startable = Vec::new();
        let mut queue = self.admission.queue.lock();
        while let Some((live, hosted, queued_at)) = queue.first(is_admitted) {
            // If another turn took the permit first, giving it back looks here again, and so does giving back a part of one.
            let Some(permit) = self.try_permit(hosted, live.task.payer()) else { break };
            let live = live.clone();
            queue.remove(&live);
            startable.push(StartableTurn { live, permit, queued_at });
        }
        startable
    }
}

#[cfg(test)]
impl Permit {
    /// A permit of no kernel; the counter tells how many there are.
    pub(crate) fn counted_by(permits: &Counter) -> Self {
        Self { engine: Weak::new(), running: None, busy: permits.acquire() }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        // Before the queue is looked at, which is why these are not left to their own drop.
        self.running = None;
        if let Some(engine) = self.engine.upgrade() {
            engine.start_queued();
        }
    }
}
