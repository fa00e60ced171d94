//! How soon jobs are run again, for how long, and how many at a time (`hub.jobs`).

use std::time::Duration;

use switchboard_host::config::jobs::Jobs;

/// Limits of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobSettings {
    /// The first wait; each next one is twice as long.
    pub first: Duration,
    /// The longest wait.
    pub most: Duration,
    /// After so long a remote task is given up that could not be canceled.
    pub give_up: Duration,
    /// Jobs that are run at a time.
    pub parallel: usize,
    /// Of these, jobs of one lane.
    pub per_agent: usize,
}

impl From<&Jobs> for JobSettings {
    fn from(jobs: &Jobs) -> Self {
        Self {
            first: jobs.first.duration(),
            most: jobs.most.duration(),
            give_up: jobs.give_up.duration(),
            parallel: jobs.parallel.get(),
            per_agent: jobs.per_agent.get(),
        }
    }
}

impl Default for JobSettings {
    fn default() -> Self {
        Self::from(&Jobs::default())
    }
}

impl JobSettings {
    /// How long a job waits that was run so often.
    pub(crate) fn wait(&self, attempts: u32) -> Duration {
        self.first.saturating_mul(1 << attempts.saturating_sub(1).min(31)).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let settings =
            JobSettings { first: Duration::from_secs(2), most: Duration::from_secs(7), ..JobSettings::default() };
        assert_eq!([0, 1, 2, 3, u32::MAX].map(|attempts| settings.wait(attempts).as_secs()), [2, 2, 4, 7, 7]);
    }
}
