//! One endpoint: what waits for it, caller by caller, how it has been doing, and whether it is left alone for a while.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use switchboard_a2a::Timestamp;
use switchboard_engine::CallerId;
use switchboard_engine::clock::later;

use super::{Change, Health, Job};
use crate::Options;

/// What waits in one lane in memory: usually, while very much waits in all, and while its endpoint is paused.
pub(super) const MOST_WAITING: usize = 10_000;
const MOST_WAITING_CROWDED: usize = 64;
pub(super) const MOST_WAITING_PAUSED: usize = 16;

#[derive(Default)]
pub(super) struct Endpoint {
    pub(super) lanes: HashMap<CallerId, Lane>,
    /// Callers whose lanes stand here because there is no room; each is in here once.
    pub(super) blocked: VecDeque<CallerId>,
    pub(super) running: usize,
    pub(super) failures: u32,
    pub(super) paused: Option<Pause>,
}

/// What waits for an endpoint on behalf of one caller.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) waiting: VecDeque<Job>,
    pub(super) state: LaneState,
    /// Something was left in the store.
    pub(super) has_more: bool,
}

/// Where a lane stands. One in which something waits always stands somewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LaneState {
    #[default]
    Idle,
    /// Among what its caller may start.
    Ready,
    /// At its endpoint, until that has room.
    Blocked,
}

#[derive(Clone, Copy)]
pub(super) struct Pause {
    pub(super) until: Timestamp,
    pub(super) length: Duration,
    /// The one try is under way.
    pub(super) probing: bool,
}

impl Pause {
    /// Whether the endpoint may be tried. One that seems to last longer than it can was begun before the clock was set
    /// back.
    pub(super) fn is_over(self, now: Timestamp) -> bool {
        self.until <= now || self.until > later(now, self.length)
    }
}

impl Endpoint {
    /// How many may wait in one lane.
    pub(super) fn lane_capacity(&self, crowded: bool) -> usize {
        match (self.paused, crowded) {
            (Some(_), _) => MOST_WAITING_PAUSED,
            (None, true) => MOST_WAITING_CROWDED,
            (None, false) => MOST_WAITING,
        }
    }

    /// Whether another job may be started.
    pub(super) fn may_start(&self, now: Timestamp, most: usize) -> bool {
        match self.paused {
            Some(pause) => pause.is_over(now) && !pause.probing,
            None => self.running < most,
        }
    }

    /// There is nothing to do for it.
    pub(super) fn is_idle(&self) -> bool {
        self.lanes.is_empty() && self.running == 0
    }

    /// Drops a lane that holds nothing and stands nowhere.
    pub(super) fn remove_if_idle(&mut self, owner: &CallerId) {
        let is_empty = |lane: &Lane| lane.waiting.is_empty() && !lane.has_more && lane.state == LaneState::Idle;
        if self.lanes.get(owner).is_some_and(is_empty) {
            self.lanes.remove(owner);
        }
    }

    /// Takes in how an attempt went.
    pub(super) fn record(&mut self, health: Health, options: &Options, now: Timestamp) -> Change {
        match health {
            Health::Unknown => {
                if let Some(pause) = &mut self.paused {
                    pause.probing = false;
                }
                Change::None
            }
            Health::Good => {
                self.failures = 0;
                match self.paused.take() {
                    Some(_) => Change::Recovered,
                    None => Change::None,
                }
            }
            Health::Bad => {
                self.failures = self.failures.saturating_add(1);
                let length = match self.paused {
                    // Others that were under way when it was paused tell nothing new.
                    Some(pause) if !pause.probing => return Change::None,
                    Some(pause) => (pause.length * 2).min(options.max_pause),
                    None if self.failures >= options.pause_after => options.pause,
                    None => return Change::None,
                };
                let until = later(now, length);
                self.paused = Some(Pause { until, length, probing: false });
                Change::Paused { until }
            }
        }
    }
}
