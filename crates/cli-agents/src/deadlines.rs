//! Deadlines of a turn: its timeout, the idle limit of its program, and when a quiet program is reported.
//!
//! The idle limit pauses while a tool runs, which may be quiet for good reason; every limit pauses while a question
//! waits for its answer (the question timeout is in `run.rs`).

use std::collections::HashSet;
use std::time::Duration;

use switchboard_a2a::Timestamp;
use switchboard_engine::clock::later;

/// After so long without an event the task says what it waits for, once: long enough for a model to begin its answer,
/// and short enough that the task does not look dead.
pub(super) const QUIET_NOTICE: Duration = Duration::from_secs(10);

pub(super) struct Deadlines {
    timeout: Option<Duration>,
    idle: Option<Duration>,
    /// Time worked and time silent, as of `seen`.
    worked: Duration,
    silent: Duration,
    /// Time without an event; none once that was reported.
    quiet: Option<Duration>,
    seen: Timestamp,
    waits_for_human: bool,
    open_tools: HashSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExceededLimit {
    Timeout,
    Idle,
}

impl Deadlines {
    pub(super) fn new(timeout: Option<Duration>, idle: Option<Duration>, now: Timestamp) -> Self {
        Self {
            timeout,
            idle,
            worked: Duration::ZERO,
            silent: Duration::ZERO,
            quiet: Some(Duration::ZERO),
            seen: now,
            waits_for_human: false,
            open_tools: HashSet::new(),
        }
    }

    /// The program has written output.
    pub(super) fn output_received(&mut self, now: Timestamp) {
        self.advance(now);
        self.silent = Duration::ZERO;
    }

    /// Its output was an event, not a line that the task leaves out.
    pub(super) fn event_received(&mut self, now: Timestamp) {
        self.advance(now);
        self.quiet = Some(Duration::ZERO);
    }

    pub(super) fn tool_opened(&mut self, id: &str, now: Timestamp) {
        self.advance(now);
        self.open_tools.insert(id.to_owned());
    }

    pub(super) fn tool_closed(&mut self, id: &str, now: Timestamp) {
        self.advance(now);
        self.open_tools.remove(id);
    }

    /// A question was opened or closed.
    pub(super) fn wait_for_human(&mut self, waits: bool, now: Timestamp) {
        self.advance(now);
        self.waits_for_human = waits;
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        if self.waits_for_human {
            return None;
        }
        let timeout = self.timeout.map(|limit| limit.saturating_sub(self.worked));
        let idle = self.idle.filter(|_| self.open_tools.is_empty()).map(|limit| limit.saturating_sub(self.silent));
        let quiet = self.quiet.map(|quiet| QUIET_NOTICE.saturating_sub(quiet));
        let left = timeout.into_iter().chain(idle).chain(quiet).min()?;
        Some(later(self.seen, left))
    }

    /// Which limit is exceeded by now.
    pub(super) fn passed(&mut self, now: Timestamp) -> Option<ExceededLimit> {
        self.advance(now);
        if self.timeout.is_some_and(|limit| self.worked >= limit) {
            Some(ExceededLimit::Timeout)
        } else if self.idle.is_some_and(|limit| self.silent >= limit) {
            Some(ExceededLimit::Idle)
        } else {
            None
        }
    }

    /// Whether to report what the task waits for. True once, until the next event.
    pub(super) fn take_quiet_notice(&mut self, now: Timestamp) -> bool {
        self.advance(now);
        self.quiet.take_if(|quiet| *quiet >= QUIET_NOTICE).is_some()
    }

    fn advance(&mut self, now: Timestamp) {
        let passed = Duration::from_millis(u64::try_from(now.0.saturating_sub(self.seen.0)).unwrap_or(0));
        self.seen = self.seen.max(now);
        if self.waits_for_human {
            return;
        }
        self.worked += passed;
        if let Some(quiet) = &mut self.quiet {
            *quiet += passed;
        }
        if self.open_tools.is_empty() {
            self.silent += passed;
        }
    }
}

/// A limit as people write it.
pub(super) fn format_limit(limit: Option<Duration>) -> String {
    let seconds = limit.unwrap_or_default().as_secs_f64();
    match seconds {
        _ if seconds >= 60.0 && seconds % 60.0 == 0.0 => format!("{} min", seconds / 60.0),
        _ => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_exact_and_a_clock_that_goes_back_does_no_harm() {
        let at = |seconds: i64| Timestamp(seconds * 1_000);
        let limit = |seconds| Some(Duration::from_secs(seconds));
        let mut deadlines = Deadlines::new(limit(100), limit(10), at(0));
        deadlines.output_received(at(9));
        assert!(deadlines.take_quiet_notice(at(10)) && !deadlines.take_quiet_notice(at(11)));
        deadlines.tool_opened("t", at(11));
        assert_eq!((deadlines.next(), deadlines.passed(at(60))), (Some(at(100)), None), "a tool may be quiet");
        deadlines.tool_closed("t", at(60));
        assert_eq!(deadlines.passed(at(1)), None, "the clock goes back");
        assert_eq!(deadlines.passed(at(67)), None);
        assert_eq!(deadlines.passed(at(68)), Some(ExceededLimit::Idle), "2 s before the tool and 8 s after it");
        deadlines.wait_for_human(true, at(68));
        assert_eq!(deadlines.next(), None);
        deadlines.wait_for_human(false, at(5_000));
        deadlines.output_received(at(5_000));
        assert_eq!(
            (deadlines.passed(at(5_009)), deadlines.next()),
            (None, Some(at(5_010))),
            "nothing counts meanwhile"
        );
    }
}
