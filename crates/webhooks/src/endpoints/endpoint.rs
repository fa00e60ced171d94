//! One endpoint: a lane of waiting jobs per caller, and a circuit breaker. Failures in a row open it (the endpoint is
//! paused), then one probe at a time goes through (half-open), and each failed probe doubles the pause.
//!
//! A paused endpoint uses up no attempts: deliveries wait, and a failed probe counts for the one delivery that was
//! sent.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use switchboard_a2a::Timestamp;
use switchboard_engine::CallerId;
use switchboard_engine::clock::later;

use super::{Change, Health, Job};
use crate::Options;

/// Jobs in one lane: usually, while very many wait in total, and while its endpoint is paused.
pub(super) const MOST_WAITING: usize = 10_000;
const MOST_WAITING_CROWDED: usize = 64;
pub(super) const MOST_WAITING_PAUSED: usize = 16;

#[derive(Default)]
pub(super) struct Endpoint {
    pub(super) lanes: HashMap<CallerId, Lane>,
    /// Callers whose lanes are [`LaneState::Blocked`], each once.
    pub(super) blocked: VecDeque<CallerId>,
    pub(super) running: usize,
    /// In a row.
    pub(super) failures: u32,
    pub(super) paused: Option<Pause>,
}

/// The waiting jobs of one caller.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) waiting: VecDeque<Job>,
    pub(super) state: LaneState,
    /// The store has more.
    pub(super) has_more: bool,
}

/// A lane with waiting jobs is never idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LaneState {
    #[default]
    Idle,
    /// In its caller's ready queue.
    Ready,
    /// In [`Endpoint::blocked`], until a job of the endpoint or its pause ends.
    Blocked,
}

#[derive(Clone, Copy)]
pub(super) struct Pause {
    pub(super) until: Timestamp,
    pub(super) length: Duration,
    /// The probe is running.
    pub(super) probing: bool,
}

impl Pause {
    /// Whether a probe may start. A pause that would last longer than its length began before the clock was set back.
    pub(super) fn is_over(self, now: Timestamp) -> bool {
        self.until <= now || self.until > later(now, self.length)
    }
}

impl Endpoint {
    pub(super) fn lane_capacity(&self, crowded: bool) -> usize {
        match (self.paused, crowded) {
            (Some(_), _) => MOST_WAITING_PAUSED,
            (None, true) => MOST_WAITING_CROWDED,
            (None, false) => MOST_WAITING,
        }
    }

    pub(super) fn may_start(&self, now: Timestamp, most: usize) -> bool {
        match self.paused {
            Some(pause) => pause.is_over(now) && !pause.probing,
            None => self.running < most,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.lanes.is_empty() && self.running == 0
    }

    pub(super) fn remove_lane_if_idle(&mut self, owner: &CallerId) {
        let is_empty = |lane: &Lane| lane.waiting.is_empty() && !lane.has_more && lane.state == LaneState::Idle;
        if self.lanes.get(owner).is_some_and(is_empty) {
            self.lanes.remove(owner);
        }
    }

    /// Records what an attempt says about the endpoint.
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
                    // Attempts that were running when the pause began say nothing new.
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
