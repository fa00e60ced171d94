//! Whether a remote agent can be reached, by its probes: a pure state machine. A few failures in a row make it down, one
//! success makes it up again, and while it is down, or has not shown a card yet, it is looked at more often.

use std::time::Duration;

use switchboard_a2a::Timestamp;

/// How often an agent is probed, and when it is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeSettings {
    pub every: Duration,
    pub while_down: Duration,
    /// Failures in a row.
    pub down_after: u32,
    /// For all places of a card that a probe asks.
    pub timeout: Duration,
}

/// What the probes of an agent have shown.
#[derive(Clone, Debug, Default)]
pub struct Reachability {
    failures: u32,
    is_down: bool,
    pub last: Option<LastProbe>,
}

/// The last probe.
#[derive(Clone, Debug)]
pub struct LastProbe {
    pub at: Timestamp,
    pub latency: Duration,
    /// Whether the agent answered. One without a card that can be read may be reached all the same.
    pub is_reached: bool,
    /// Why there is no card, with every address that was tried.
    pub error: Option<String>,
}

/// A change that a probe has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachabilityChange {
    Up,
    Down,
}

impl Reachability {
    /// An agent that was never probed counts as up.
    pub fn is_down(&self) -> bool {
        self.is_down
    }

    /// Whether the last probe has reached it.
    pub fn is_known_to_be_up(&self) -> bool {
        self.last.as_ref().is_some_and(|last| last.is_reached)
    }

    /// The same for another address: nothing is known of it, but one that was down stays so until it is reached.
    pub fn moved(&self) -> Self {
        Self { is_down: self.is_down, ..Self::default() }
    }

    /// Takes the result of a probe.
    pub fn record(&mut self, probe: LastProbe, settings: &ProbeSettings) -> Option<ReachabilityChange> {
        let failed = !probe.is_reached;
        self.last = Some(probe);
        if !failed {
            self.failures = 0;
            return std::mem::take(&mut self.is_down).then_some(ReachabilityChange::Up);
        }
        self.failures = self.failures.saturating_add(1);
        if self.is_down || self.failures < settings.down_after {
            return None;
        }
        self.is_down = true;
        Some(ReachabilityChange::Down)
    }

    /// How long until the next probe. One without a card has no skills to be found by, and may just be starting: it is
    /// probed as often as one that is down. `jitter` is between 0 and 1, and makes up to a fifth more or less of it, so
    /// that not all agents are probed at once.
    pub fn next_in(&self, settings: &ProbeSettings, has_card: bool, jitter: f64) -> Duration {
        let usual = if self.is_down || !has_card { settings.while_down } else { settings.every };
        usual.mul_f64(0.8 + 0.4 * jitter.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: ProbeSettings = ProbeSettings {
        every: Duration::from_secs(60),
        while_down: Duration::from_secs(15),
        down_after: 3,
        timeout: Duration::from_secs(5),
    };

    #[test]
    fn three_failures_in_a_row_are_down_and_one_success_is_up() {
        use ReachabilityChange::{Down, Up};
        let mut reachability = Reachability::default();
        let mut probe = |is_good: bool| {
            let error = (!is_good).then(|| "refused".to_owned());
            let last = LastProbe { at: Timestamp(0), latency: Duration::ZERO, is_reached: is_good, error };
            (reachability.record(last, &SETTINGS), reachability.next_in(&SETTINGS, true, 0.5).as_secs())
        };
        let steps = [true, false, false, true, false, false, false, false, true, false];
        let told: Vec<_> = steps.into_iter().map(&mut probe).collect();
        let changes: Vec<_> = told.iter().map(|(change, _)| *change).collect();
        assert_eq!(changes, [None, None, None, None, None, None, Some(Down), None, Some(Up), None]);
        let waits: Vec<_> = told.iter().map(|(_, wait)| *wait).collect();
        assert_eq!(waits, [60, 60, 60, 60, 60, 60, 15, 15, 60, 60]);
        let bounds = [0.0, 1.0].map(|jitter| reachability.next_in(&SETTINGS, true, jitter).as_secs());
        assert_eq!(bounds, [48, 72]);
        let bounds = [0.0, 1.0].map(|jitter| reachability.next_in(&SETTINGS, false, jitter).as_secs());
        assert_eq!(bounds, [12, 18], "one that has shown no card yet may be starting");
    }
}
