//! How runs of programs end, and the metrics that count them.

use switchboard_engine::Stopped;

use crate::adapters::Ending;
use crate::deadlines::ExceededLimit;
use crate::metric_definitions as metric;
use crate::settings::Worker;

pub(crate) enum RunOutcome {
    Ended(Ending),
    TimeLimit(ExceededLimit),
    /// The question about this tool timed out.
    Expired(String),
    OutputLimit(String),
    NotStarted(String),
    Refused(String),
}

/// Counts a run by its outcome, also one that did not start.
pub(crate) fn count(worker: &Worker, ran: &Result<RunOutcome, Stopped>) {
    let outcome = ran.as_ref().map_or("stopped", RunOutcome::label);
    let cli = worker.adapter.about().name.clone();
    metrics::counter!(metric::TURNS, "cli" => cli, "outcome" => outcome).increment(1);
}

/// Counts a program as running while it lives.
pub(super) struct RunningGauge(String);

impl RunningGauge {
    pub(super) fn new(cli: String) -> Self {
        metrics::gauge!(metric::RUNNING, "cli" => cli.clone()).increment(1);
        Self(cli)
    }
}

impl Drop for RunningGauge {
    fn drop(&mut self) {
        metrics::gauge!(metric::RUNNING, "cli" => self.0.clone()).decrement(1);
    }
}

impl RunOutcome {
    fn label(&self) -> &'static str {
        match self {
            Self::Ended(Ending::Done { .. }) => "completed",
            Self::Ended(Ending::Failed(_)) => "failed",
            Self::TimeLimit(ExceededLimit::Timeout) => "timed_out",
            Self::TimeLimit(ExceededLimit::Idle) => "idle",
            Self::Expired(_) => "approval_expired",
            Self::OutputLimit(_) => "too_large",
            Self::NotStarted(_) => "not_started",
            Self::Refused(_) => "refused",
        }
    }
}
