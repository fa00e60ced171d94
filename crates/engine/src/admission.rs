//! How many turns run at the same time.
//!
//! The way in is three counters; a read lock that nobody holds for long finds those of the caller. Only when a cap is
//! reached does a turn go into the queue; every place that becomes free looks there.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};

use crate::directory::Hosted;
use crate::engine::EngineState;
use crate::ids::CallerId;
use crate::live_task::LiveTask;
use crate::queue::{Lane, Queue, QueuePriority, QueueSlot};

/// Counts and queue of a process.
#[derive(Default)]
pub(crate) struct Admission {
    running: AtomicUsize,
    /// Turns that run or still have output to commit, and do not only wait; a stop waits for these.
    busy: Arc<AtomicUsize>,
    parked: AtomicUsize,
    callers: RwLock<HashMap<CallerId, Arc<CallerCounts>>>,
    queue: Mutex<Queue>,
    /// Places in the queue, those included whose task is still on its way into the log.
    queued: Arc<AtomicUsize>,
    /// How often it was asked to start queued turns since somebody is at it.
    starting: AtomicUsize,
}

/// What one caller has under way.
#[derive(Default)]
pub(crate) struct CallerCounts {
    running: AtomicUsize,
    parked: AtomicUsize,
}

/// A place to run. Dropping it lets the next turn in.
pub(crate) struct Permit {
    engine: Weak<EngineState>,
    hosted: Arc<Hosted>,
    caller: Arc<CallerCounts>,
    /// Who has a place is about to run, or runs: a stop waits for it from here on.
    pub(crate) busy: Busy,
}

/// Counts a turn as busy while it lives and does not rest.
pub(crate) struct Busy {
    count: Arc<AtomicUsize>,
    rests: bool,
}

impl Busy {
    pub(crate) fn new(engine: &EngineState) -> Self {
        let count = engine.admission.busy.clone();
        count.fetch_add(1, Ordering::AcqRel);
        Self { count, rests: false }
    }

    /// Whether a stop need not wait for it: it only waits itself, for an answer or for another turn.
    pub(crate) fn rest(&mut self, rests: bool) {
        match (self.rests, rests) {
            (false, true) => drop(self.count.fetch_sub(1, Ordering::AcqRel)),
            (true, false) => drop(self.count.fetch_add(1, Ordering::AcqRel)),
            _ => {}
        }
        self.rests = rests;
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.rest(true);
    }
}

impl Admission {
    pub(crate) fn busy(&self) -> usize {
        self.busy.load(Ordering::Acquire)
    }

    /// The counts of a caller.
    pub(crate) fn caller(&self, id: &CallerId) -> Arc<CallerCounts> {
        if let Some(counts) = self.callers.read().get(id) {
            return counts.clone();
        }
        self.callers.write().entry(id.clone()).or_default().clone()
    }

    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    pub(crate) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Where a task waits: 1 is next.
    pub(crate) fn position(&self, live: &LiveTask) -> Option<usize> {
        self.queue.lock().position(live)
    }

    pub(crate) fn count_parked(&self, caller: &CallerId, change: isize) {
        let counts = self.caller(caller);
        for counter in [&self.parked, &counts.parked] {
            if change >= 0 {
                counter.fetch_add(change.unsigned_abs(), Ordering::Relaxed);
            } else {
                counter.fetch_sub(change.unsigned_abs(), Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn parked(&self, caller: &CallerId) -> (usize, usize) {
        (self.parked.load(Ordering::Relaxed), self.caller(caller).parked.load(Ordering::Relaxed))
    }

    /// A place in the queue, if fewer than `limit` are taken.
    pub(crate) fn queue_slot(&self, limit: usize) -> Option<QueueSlot> {
        QueueSlot::take(&self.queued, limit)
    }

    pub(crate) fn enqueue(&self, rank: QueuePriority, live: Arc<LiveTask>, slot: QueueSlot) {
        if let Some(hosted) = live.hosted.clone() {
            let caller = self.caller(&live.task.owner);
            self.queue.lock().push(rank, live, &hosted, caller, slot);
        }
    }

    /// Takes a task out of the queue wherever it stands.
    pub(crate) fn withdraw(&self, live: &LiveTask) {
        self.queue.lock().remove(live);
    }
}

impl EngineState {
    /// A place for a turn, if every cap has room.
    pub(crate) fn try_permit(self: &Arc<Self>, hosted: &Arc<Hosted>, owner: &CallerId) -> Option<Permit> {
        self.permit(hosted, self.admission.caller(owner))
    }

    fn permit(self: &Arc<Self>, hosted: &Arc<Hosted>, caller: Arc<CallerCounts>) -> Option<Permit> {
        let settings = &self.settings;
        let counters = [
            (&self.admission.running, settings.running_tasks),
            (&hosted.running, hosted.cap(settings.running_per_agent)),
            (&caller.running, settings.running_per_caller),
        ];
        for (index, (counter, cap)) in counters.iter().enumerate() {
            if counter.fetch_add(1, Ordering::AcqRel) >= *cap {
                for (counter, _) in &counters[..=index] {
                    counter.fetch_sub(1, Ordering::AcqRel);
                }
                return None;
            }
        }
        let engine = Arc::downgrade(self);
        Some(Permit { engine, hosted: hosted.clone(), caller, busy: Busy::new(self) })
    }

    /// Starts queued turns while there is room for them, in order; one whose own cap is full lets others pass.
    ///
    /// Only one caller is at it at a time, and looks again for the others. A place that is given back while a turn is
    /// being started, as when the runtime no longer takes work, must not come back in here.
    pub(crate) fn start_queued(self: &Arc<Self>) {
        if self.admission.queued() == 0 || self.closing.is_cancelled() {
            return;
        }
        if self.admission.starting.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        loop {
            let asked = self.admission.starting.load(Ordering::Acquire);
            // One lane's turns begin one after the other: some of them wait for each other, in this order.
            let mut lanes: HashMap<_, Vec<_>> = HashMap::new();
            for (live, permit) in self.take_startable() {
                let lane = (live.task.agent.clone(), live.task.owner.clone());
                lanes.entry(lane).or_default().push((live, permit));
            }
            for turns in lanes.into_values() {
                self.spawn_queued(turns);
            }
            if self.admission.starting.compare_exchange(asked, 0, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return;
            }
        }
    }

    fn take_startable(self: &Arc<Self>) -> Vec<(Arc<LiveTask>, Permit)> {
        let settings = &self.settings;
        let is_room = |lane: &Lane| {
            lane.hosted.recovering.load(Ordering::Acquire) == 0
                && lane.hosted.running.load(Ordering::Acquire) < lane.hosted.cap(settings.running_per_agent)
                && lane.caller.running.load(Ordering::Acquire) < settings.running_per_caller
        };
        let mut startable = Vec::new();
        let mut queue = self.admission.queue.lock();
        while self.admission.running() < settings.running_tasks {
            let Some((live, lane)) = queue.first(is_room) else { break };
            // If somebody was faster, they look here again when they are done.
            let Some(permit) = self.permit(&lane.hosted, lane.caller.clone()) else { break };
            let live = live.clone();
            queue.remove(&live);
            startable.push((live, permit));
        }
        startable
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.hosted.running.fetch_sub(1, Ordering::AcqRel);
        self.caller.running.fetch_sub(1, Ordering::AcqRel);
        if let Some(engine) = self.engine.upgrade() {
            engine.admission.running.fetch_sub(1, Ordering::AcqRel);
            engine.start_queued();
        }
    }
}
