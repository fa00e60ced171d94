//! How many turns run at the same time, and who waits.
//!
//! The way in is three counters and no lock. Only when a cap is reached does a turn go into the one queue; every
//! place that becomes free looks there.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::directory::Hosted;
use crate::engine::Inner;
use crate::ids::CallerId;
use crate::live::LiveTask;

/// Counts and queue of a process.
#[derive(Default)]
pub(crate) struct Caps {
    running: AtomicUsize,
    /// Turns that run or still have output to commit; a stop waits for these.
    busy: AtomicUsize,
    parked: AtomicUsize,
    callers: Mutex<HashMap<CallerId, Arc<CallerCounts>>>,
    queue: Mutex<VecDeque<Waiting>>,
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
    engine: Weak<Inner>,
    hosted: Arc<Hosted>,
    caller: Arc<CallerCounts>,
}

/// A place in the queue. It counts from the moment it is promised, so that the queue never grows beyond its limit.
pub(crate) struct Place(Arc<AtomicUsize>);

/// A turn in the queue.
struct Waiting {
    live: Arc<LiveTask>,
    _place: Place,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Counts a turn as busy while it lives.
pub(crate) struct Busy(Arc<Inner>);

impl Busy {
    pub(crate) fn new(engine: &Arc<Inner>) -> Self {
        engine.caps.busy.fetch_add(1, Ordering::AcqRel);
        Self(engine.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.caps.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Caps {
    pub(crate) fn busy(&self) -> usize {
        self.busy.load(Ordering::Acquire)
    }

    /// The counts of a caller.
    pub(crate) fn caller(&self, id: &CallerId) -> Arc<CallerCounts> {
        let mut callers = self.callers.lock();
        if let Some(counts) = callers.get(id) {
            return counts.clone();
        }
        callers.entry(id.clone()).or_default().clone()
    }

    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    pub(crate) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Where a task waits: 1 is next.
    pub(crate) fn position(&self, live: &Arc<LiveTask>) -> Option<usize> {
        let queue = self.queue.lock();
        queue.iter().position(|waiting| Arc::ptr_eq(&waiting.live, live)).map(|index| index + 1)
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
    pub(crate) fn place(&self, limit: usize) -> Option<Place> {
        let place = Place(self.queued.clone());
        // Counted before the comparison: of two that come at once, only one gets the last place.
        (self.queued.fetch_add(1, Ordering::AcqRel) < limit).then_some(place)
    }

    pub(crate) fn enqueue(&self, live: Arc<LiveTask>, place: Place) {
        let mut queue = self.queue.lock();
        if !queue.iter().any(|waiting| Arc::ptr_eq(&waiting.live, &live)) {
            queue.push_back(Waiting { live, _place: place });
        }
    }

    /// Takes a task out of the queue wherever it stands.
    pub(crate) fn withdraw(&self, live: &Arc<LiveTask>) {
        self.queue.lock().retain(|waiting| !Arc::ptr_eq(&waiting.live, live));
    }
}

impl Inner {
    /// A place for a turn, if every cap has room.
    pub(crate) fn try_permit(self: &Arc<Self>, hosted: &Arc<Hosted>, owner: &CallerId) -> Option<Permit> {
        let caller = self.caps.caller(owner);
        let settings = &self.settings;
        let counters = [
            (&self.caps.running, settings.running_tasks),
            (&hosted.running, settings.running_per_agent),
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
        Some(Permit { engine: Arc::downgrade(self), hosted: hosted.clone(), caller })
    }

    /// Starts queued turns while there is room for them, in order; one whose own cap is full lets others pass.
    ///
    /// Only one caller is at it at a time, and looks again for the others. A place that is given back while a turn is
    /// being started, as when the runtime no longer takes work, must not come back in here.
    pub(crate) fn start_queued(self: &Arc<Self>) {
        if self.caps.queued() == 0 || self.closing.is_cancelled() {
            return;
        }
        if self.caps.starting.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        loop {
            let asked = self.caps.starting.load(Ordering::Acquire);
            for (live, permit) in self.take_startable() {
                self.spawn_queued(live, permit);
            }
            if self.caps.starting.compare_exchange(asked, 0, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return;
            }
        }
    }

    fn take_startable(self: &Arc<Self>) -> Vec<(Arc<LiveTask>, Permit)> {
        let mut startable = Vec::new();
        let mut queue = self.caps.queue.lock();
        let mut index = 0;
        while index < queue.len() && self.caps.running() < self.settings.running_tasks {
            let live = &queue[index].live;
            let permit = match &live.hosted {
                Some(hosted) => self.try_permit(hosted, &live.task.owner),
                None => None,
            };
            let Some(permit) = permit else {
                index += 1;
                continue;
            };
            if let Some(waiting) = queue.remove(index) {
                startable.push((waiting.live, permit));
            }
        }
        startable
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.hosted.running.fetch_sub(1, Ordering::AcqRel);
        self.caller.running.fetch_sub(1, Ordering::AcqRel);
        if let Some(engine) = self.engine.upgrade() {
            engine.caps.running.fetch_sub(1, Ordering::AcqRel);
            engine.start_queued();
        }
    }
}
