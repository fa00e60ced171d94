//! When the remote task of a question is looked at: ever more rarely, and not at the same moments as those of other tasks.

use std::time::Duration;

use switchboard_a2a::Timestamp;
use switchboard_engine::ids::TaskKey;

/// When waiting tasks are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollSettings {
    /// After the question was asked; each next look waits twice as long.
    pub first: Duration,
    /// The longest wait.
    pub most: Duration,
}

impl Default for PollSettings {
    fn default() -> Self {
        Self { first: Duration::from_secs(30), most: Duration::from_secs(600) }
    }
}

impl PollSettings {
    /// The waits of one task: up to a fifth shorter or longer, always the same ones. Questions that were asked together are
    /// looked at apart.
    pub(super) fn spread_for(self, task: TaskKey) -> Self {
        let mixed = task.0.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let factor = 0.8 + 0.4 * (mixed as f64 / f64::from(u32::MAX));
        Self { first: self.first.mul_f64(factor), most: self.most.mul_f64(factor) }
    }

    /// How many looks are due between a question and a time.
    pub(super) fn looks(&self, asked: Timestamp, now: Timestamp) -> u64 {
        let elapsed = u64::try_from(now.0.saturating_sub(asked.0)).unwrap_or(0);
        let (mut wait, mut at, mut looks) = (self.first.as_millis().max(1), self.first.as_millis().max(1), 0);
        let most = self.most.max(self.first).as_millis().max(1);
        while wait < most && at <= u128::from(elapsed) {
            looks += 1;
            wait = (wait * 2).min(most);
            at += wait;
        }
        if at > u128::from(elapsed) {
            return looks;
        }
        looks + u64::try_from((u128::from(elapsed) - at) / most).unwrap_or(u64::MAX) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_due_ever_more_rarely_and_never_end() {
        let settings = PollSettings { first: Duration::from_secs(30), most: Duration::from_secs(600) };
        let after = |seconds: i64| settings.looks(Timestamp(1_000), Timestamp(1_000 + seconds * 1_000));
        // 30, 60, 120, 240, 480, 600, 600 … apart.
        for (seconds, looks) in [(0, 0), (29, 0), (30, 1), (89, 1), (90, 2), (210, 3), (450, 4), (930, 5), (1_529, 5)] {
            assert_eq!(after(seconds), looks, "{seconds}");
        }
        assert_eq!((after(1_530), after(2_130), after(86_400)), (6, 7, 147));
        assert_eq!(settings.looks(Timestamp(5_000), Timestamp(0)), 0, "a clock that was set back");
    }

    #[test]
    fn tasks_that_began_to_wait_together_are_looked_at_apart() {
        let settings = PollSettings::default();
        let firsts: Vec<_> = (1..=100).map(|key| settings.spread_for(TaskKey(key)).first.as_secs_f64()).collect();
        assert!(firsts.iter().all(|first| (24.0..=36.0).contains(first)), "{firsts:?}");
        let early = firsts.iter().filter(|first| **first < 30.0).count();
        assert!((25..75).contains(&early), "about as many before as after: {early}");
        assert_eq!(settings.spread_for(TaskKey(7)), settings.spread_for(TaskKey(7)));
    }
}
