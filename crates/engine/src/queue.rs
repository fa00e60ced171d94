//! Turns that wait for a place, in the order they came.
//!
//! They stand in lanes, one for each agent and caller, because all of a lane wait for the same places: one look at
//! its first tells about the thousand behind it. A lane whose places are taken holds nobody else up.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::admission::CallerCounts;
use crate::directory::Hosted;
use crate::ids::{AgentName, CallerId};
use crate::live_task::LiveTask;

/// A place in the queue. It counts from the moment it is promised, so that the queue never grows beyond its limit.
pub(crate) struct QueueSlot(Arc<AtomicUsize>);

impl QueueSlot {
    /// A place, if fewer than `limit` are taken.
    pub(crate) fn take(taken: &Arc<AtomicUsize>, limit: usize) -> Option<Self> {
        let slot = Self(taken.clone());
        // Counted before the comparison: of two that come at once, only one gets the last place.
        (taken.fetch_add(1, Ordering::AcqRel) < limit).then_some(slot)
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Who comes before whom, whenever they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePriority {
    /// It has begun and goes on.
    Started,
    /// It waited in the process before this one.
    Recovered,
    /// It has come to this process.
    New,
}

/// Numbers of one rank are below those of the next.
const PER_RANK: u64 = 1 << 32;

/// All that wait.
#[derive(Default)]
pub(crate) struct Queue {
    /// How many numbers were given out in each rank.
    last: [u64; 3],
    lanes: HashMap<(AgentName, CallerId), Lane>,
}

/// Those of one caller that wait for one agent.
pub(crate) struct Lane {
    pub(crate) hosted: Arc<Hosted>,
    pub(crate) caller: Arc<CallerCounts>,
    /// With rising numbers.
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    number: u64,
    live: Arc<LiveTask>,
    _slot: QueueSlot,
}

impl Queue {
    /// Puts a task at the end of its rank, unless it waits already.
    pub(crate) fn push(
        &mut self,
        rank: QueuePriority,
        live: Arc<LiveTask>,
        hosted: &Arc<Hosted>,
        caller: Arc<CallerCounts>,
        slot: QueueSlot,
    ) {
        if live.queue_number.load(Ordering::Acquire) != 0 {
            return;
        }
        let rank = rank as usize;
        self.last[rank] += 1;
        let number = rank as u64 * PER_RANK + self.last[rank];
        live.queue_number.store(number, Ordering::Release);
        let key = (live.task.agent.clone(), live.task.owner.clone());
        let new = || Lane { hosted: hosted.clone(), caller, waiting: VecDeque::new() };
        let lane = self.lanes.entry(key).or_insert_with(new);
        let index = lane.waiting.partition_point(|waiting| waiting.number < number);
        lane.waiting.insert(index, Waiting { number, live, _slot: slot });
    }

    /// Takes a task out wherever it stands.
    pub(crate) fn remove(&mut self, live: &LiveTask) {
        let number = live.queue_number.swap(0, Ordering::AcqRel);
        let key = (live.task.agent.clone(), live.task.owner.clone());
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        let Ok(index) = lane.waiting.binary_search_by_key(&number, |waiting| waiting.number) else { return };
        lane.waiting.remove(index);
        if lane.waiting.is_empty() {
            self.lanes.remove(&key);
        }
    }

    /// Where a task stands: 1 is next.
    pub(crate) fn position(&self, live: &LiveTask) -> Option<usize> {
        let number = live.queue_number.load(Ordering::Acquire);
        let before = |lane: &Lane| lane.waiting.partition_point(|waiting| waiting.number < number);
        (number != 0).then(|| self.lanes.values().map(before).sum::<usize>() + 1)
    }

    /// The first in order among the lanes for which there `is_room`.
    pub(crate) fn first(&self, is_room: impl Fn(&Lane) -> bool) -> Option<(&Arc<LiveTask>, &Lane)> {
        let open = self.lanes.values().filter(|lane| is_room(lane));
        let heads = open.filter_map(|lane| lane.waiting.front().map(|head| (head, lane)));
        let first = heads.min_by_key(|(head, _)| head.number);
        first.map(|(head, lane)| (&head.live, lane))
    }
}
