//! The queue of turns that wait for a permit, in the order they came.
//!
//! It has one lane for each agent and payer, because all turns of a lane wait for the same limits: a look at its first
//! one tells about the thousand behind it. A lane at its limit holds up no other.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use switchboard_a2a::Timestamp;
use switchboard_admission::CounterPermit;

use crate::directory::Hosted;
use crate::ids::{AgentName, CallerId};
use crate::live_task::LiveTask;
use crate::store::TaskIdentity;

/// Turns of a higher priority go first, whenever they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePriority {
    /// It has begun and goes on.
    Started,
    /// It waited in the process before this one.
    Recovered,
    /// A turn that has begun waits for it.
    Child,
    /// It has come to this process.
    New,
}

impl QueuePriority {
    /// That of a turn that has not begun.
    pub(crate) fn of_new(task: &TaskIdentity) -> Self {
        if task.is_child() { Self::Child } else { Self::New }
    }
}

/// Numbers of one priority are below those of the next.
const PER_PRIORITY: u64 = 1 << 32;

/// All turns that wait.
#[derive(Default)]
pub(crate) struct Queue {
    /// How many numbers were given out in each priority.
    last: [u64; 4],
    lanes: HashMap<(AgentName, CallerId), Lane>,
}

/// The turns that wait for one agent and are paid for by one caller.
struct Lane {
    hosted: Arc<Hosted>,
    /// With rising numbers.
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    number: u64,
    live: Arc<LiveTask>,
    /// When it began to wait.
    since: Timestamp,
    _slot: CounterPermit,
}

impl Queue {
    /// Puts a task at the end of its priority, unless it waits already or its agent is gone.
    pub(crate) fn push(&mut self, priority: QueuePriority, live: Arc<LiveTask>, since: Timestamp, slot: CounterPermit) {
        let Some(hosted) = live.hosted.clone() else { return };
        if live.queue_number.load(Ordering::Acquire) != 0 {
            return;
        }
        let priority = priority as usize;
        self.last[priority] += 1;
        let number = priority as u64 * PER_PRIORITY + self.last[priority];
        live.queue_number.store(number, Ordering::Release);
        let key = (live.task.agent.clone(), live.task.payer().clone());
        let new = || Lane { hosted, waiting: VecDeque::new() };
        let lane = self.lanes.entry(key).or_insert_with(new);
        let index = lane.waiting.partition_point(|waiting| waiting.number < number);
        lane.waiting.insert(index, Waiting { number, live, since, _slot: slot });
    }

    /// Takes a task out wherever it stands.
    pub(crate) fn remove(&mut self, live: &LiveTask) {
        let number = live.queue_number.swap(0, Ordering::AcqRel);
        let key = (live.task.agent.clone(), live.task.payer().clone());
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

    /// The first in order among the lanes that may run a turn, and since when it waits.
    pub(crate) fn first(
        &self,
        is_admitted: impl Fn(&CallerId, &Hosted) -> bool,
    ) -> Option<(&Arc<LiveTask>, &Arc<Hosted>, Timestamp)> {
        let open = self.lanes.iter().filter(|((_, caller), lane)| is_admitted(caller, &lane.hosted));
        let heads = open.filter_map(|(_, lane)| lane.waiting.front().map(|head| (head, &lane.hosted)));
        heads.min_by_key(|(head, _)| head.number).map(|(head, hosted)| (&head.live, hosted, head.since))
    }
}
