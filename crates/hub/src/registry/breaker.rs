//! The circuit breaker of a remote agent: after transport failures in a row it opens and requests fail at once, until one
//! trial request shows that the agent is back.
//!
//! What the agent refuses is an answer and closes it. The failures must be of two tasks or probes at least: a task whose
//! own request breaks the agent must not cut off all others.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_a2a::TaskId;
use switchboard_client::{CardAttempt, ClientError};
use switchboard_egress::SendError;
use switchboard_engine::clock::Clock;

/// When a breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Failures in a row that open it.
    pub failures: u32,
    /// How long it stays open before one trial request.
    pub open: Duration,
}

/// Whether requests are let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BreakerState {
    Closed,
    /// One trial request is due or under way.
    HalfOpen,
    Open,
}

impl BreakerState {
    /// Its name in responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half_open",
            Self::Open => "open",
        }
    }
}

/// What a request was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestSource<'a> {
    Task(&'a TaskId),
    /// A fetch of the card; each one counts by itself.
    Probe,
}

/// What a request says of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// The agent answered, if only with a refusal.
    Answered,
    /// The agent was not reached, broke off, or a server error came instead of an answer.
    Failed,
    /// The request never left this process.
    NotSent,
}

impl RequestOutcome {
    /// The outcome of a call.
    pub fn of<T>(result: &Result<T, ClientError>) -> Self {
        match result {
            Ok(_) => Self::Answered,
            Err(error) => Self::of_error(error),
        }
    }

    /// The outcome of a failed call.
    pub fn of_error(error: &ClientError) -> Self {
        let failed = |attempt: &CardAttempt| attempt.status.is_none_or(|status| status >= 500);
        match error {
            // Not the agent's fault: too many connections are open here.
            ClientError::Unreachable { error: SendError::ConnectionLimit, .. } => Self::NotSent,
            ClientError::Unreachable { .. } | ClientError::Lost { .. } | ClientError::Timeout { .. } => Self::Failed,
            ClientError::NotA2a { status, .. } if *status >= 500 => Self::Failed,
            ClientError::NoCard(tried) if tried.iter().any(failed) => Self::Failed,
            ClientError::Secret(_) | ClientError::Invalid { .. } | ClientError::Address { .. } => Self::NotSent,
            _ => Self::Answered,
        }
    }
}

/// A request that is not let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the circuit breaker of this agent is open for another {} ms", .retry_after.as_millis())]
pub struct BreakerOpen {
    /// When a trial may be let through.
    pub retry_after: Duration,
}

/// What is called with the new state, outside of the breaker's lock.
type Listener = Box<dyn Fn(BreakerState) + Send + Sync>;

/// The breaker of one agent, shared by all that call it.
pub struct CircuitBreaker {
    settings: BreakerSettings,
    clock: Arc<dyn Clock>,
    circuit: Mutex<Circuit>,
    listener: Listener,
}

impl CircuitBreaker {
    /// A closed one. The listener is called when it opens and when it has closed again, once for each outage: trials that
    /// fail in between change nothing.
    pub fn new(
        settings: BreakerSettings,
        clock: Arc<dyn Clock>,
        listener: impl Fn(BreakerState) + Send + Sync + 'static,
    ) -> Self {
        Self { settings, clock, circuit: Mutex::new(Circuit::default()), listener: Box::new(listener) }
    }

    /// Asked before each request. A request that was let through is recorded when it has ended.
    pub fn allow(&self) -> Result<(), BreakerOpen> {
        self.change(|circuit, settings, now| circuit.allow(settings, now))
    }

    /// Records how a request went.
    pub fn record(&self, source: RequestSource<'_>, outcome: RequestOutcome) {
        self.change(|circuit, settings, now| circuit.record(source, outcome, settings, now));
    }

    /// Its state now.
    pub fn state(&self) -> BreakerState {
        self.circuit.lock().state(self.clock.monotonic())
    }

    /// How long until a trial may be let through; nothing unless it is open.
    pub fn reopens_in(&self) -> Option<Duration> {
        self.circuit.lock().trial_in(self.clock.monotonic())
    }

    fn change<T>(&self, change: impl FnOnce(&mut Circuit, BreakerSettings, Duration) -> T) -> T {
        let now = self.clock.monotonic();
        let mut circuit = self.circuit.lock();
        let before = circuit.phase();
        let answer = change(&mut circuit, self.settings, now);
        let after = circuit.phase();
        drop(circuit);
        if (before == BreakerState::Closed) != (after == BreakerState::Closed) {
            (self.listener)(after);
        }
        answer
    }
}

/// The state machine, without a clock of its own.
#[derive(Debug)]
enum Circuit {
    Closed(Failures),
    Open {
        until: Duration,
    },
    /// The trial counts as lost at that time, and another one is let through.
    HalfOpen {
        trial_until: Duration,
    },
}

/// Failures in a row.
#[derive(Debug, Default)]
struct Failures {
    count: u32,
    /// The task of the last one, unless it was a probe.
    last: Option<TaskId>,
    several: bool,
}

impl Default for Circuit {
    fn default() -> Self {
        Self::Closed(Failures::default())
    }
}

impl Circuit {
    /// The stored state; [`Self::state`] also looks at the time.
    fn phase(&self) -> BreakerState {
        match self {
            Self::Closed(_) => BreakerState::Closed,
            Self::Open { .. } => BreakerState::Open,
            Self::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    fn state(&self, now: Duration) -> BreakerState {
        match self {
            Self::Open { until } if *until <= now => BreakerState::HalfOpen,
            _ => self.phase(),
        }
    }

    fn trial_in(&self, now: Duration) -> Option<Duration> {
        match self {
            Self::Closed(_) => None,
            Self::Open { until } | Self::HalfOpen { trial_until: until } => Some(until.saturating_sub(now)),
        }
    }

    fn allow(&mut self, settings: BreakerSettings, now: Duration) -> Result<(), BreakerOpen> {
        let retry_after = self.trial_in(now).unwrap_or_default();
        if !retry_after.is_zero() {
            return Err(BreakerOpen { retry_after });
        }
        if !matches!(self, Self::Closed(_)) {
            *self = Self::HalfOpen { trial_until: now + settings.open };
        }
        Ok(())
    }

    fn record(&mut self, source: RequestSource<'_>, outcome: RequestOutcome, settings: BreakerSettings, now: Duration) {
        let open = Self::Open { until: now + settings.open };
        match (&mut *self, outcome) {
            // Requests from before it opened say nothing of the agent now.
            (_, RequestOutcome::NotSent) | (Self::Open { .. }, _) => {}
            (_, RequestOutcome::Answered) => *self = Self::default(),
            (Self::HalfOpen { .. }, RequestOutcome::Failed) => *self = open,
            (Self::Closed(failures), RequestOutcome::Failed) => {
                failures.add(source);
                if failures.count >= settings.failures && failures.several {
                    *self = open;
                }
            }
        }
    }
}

impl Failures {
    fn add(&mut self, source: RequestSource<'_>) {
        let task = match source {
            RequestSource::Task(task) => Some(task),
            RequestSource::Probe => None,
        };
        self.several |= self.count > 0 && (task.is_none() || self.last.as_ref() != task);
        self.last = task.cloned();
        self.count = self.count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::RequestOutcome::{Answered, Failed, NotSent};
    use super::*;

    const SETTINGS: BreakerSettings = BreakerSettings { failures: 5, open: Duration::from_secs(60) };

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Plays `(second, source, outcome)`; source 0 is a probe, others are tasks. Says the state after each.
    fn play(steps: &[(u64, u8, RequestOutcome)]) -> Vec<BreakerState> {
        let mut circuit = Circuit::default();
        let tasks: Vec<TaskId> = (0..10).map(|number| TaskId::from(format!("task-{number}"))).collect();
        let mut states = Vec::new();
        for (second, source, outcome) in steps {
            let source = match source {
                0 => RequestSource::Probe,
                number => RequestSource::Task(&tasks[usize::from(*number)]),
            };
            // Recorded whether it was let through or not: some were sent before it opened.
            let _ = circuit.allow(SETTINGS, at(*second));
            circuit.record(source, *outcome, SETTINGS, at(*second));
            states.push(circuit.state(at(*second)));
        }
        states
    }

    #[test]
    fn an_agent_is_not_blamed_for_a_lack_of_connections_here() {
        let outcome = |error| RequestOutcome::of_error(&ClientError::Unreachable { origin: "agent".to_owned(), error });
        assert_eq!(outcome(SendError::ConnectionLimit), NotSent);
        assert_eq!(outcome(SendError::Broken), Failed);
    }

    #[test]
    fn it_opens_after_failures_in_a_row_of_more_than_one_source() {
        use BreakerState::{Closed, Open};
        let last = |steps: &[(u64, u8, RequestOutcome)]| play(steps).last().copied();
        let fail = |sources: &[u8]| last(&sources.iter().map(|source| (0, *source, Failed)).collect::<Vec<_>>());
        for (sources, expected) in [
            (&[1, 1, 1, 1, 2][..], Open),
            (&[1, 2, 1, 2], Closed),
            (&[1, 1, 1, 1, 1, 1, 1], Closed),
            (&[1, 1, 1, 1, 1, 1, 2], Open),
            (&[0, 0, 0, 0, 0], Open),
            (&[0, 0, 0, 0], Closed),
            (&[1, 1, 1, 1, 0], Open),
            (&[0, 1, 1, 1, 1], Open),
        ] {
            assert_eq!(fail(sources), Some(expected), "{sources:?}");
        }
        let one = |outcome| {
            last(&[(0, 0, Failed), (0, 0, Failed), (0, 1, outcome), (0, 0, Failed), (0, 0, Failed), (0, 0, Failed)])
        };
        assert_eq!(one(Answered), Some(Closed), "an answer begins the count again");
        assert_eq!(one(NotSent), Some(Open), "what was not sent says nothing");
    }

    #[test]
    fn one_trial_decides_whether_it_closes() {
        let mut circuit = Circuit::Open { until: at(60) };
        assert_eq!(circuit.allow(SETTINGS, at(59)), Err(BreakerOpen { retry_after: at(1) }));
        circuit.record(RequestSource::Probe, Answered, SETTINGS, at(59));
        assert_eq!(circuit.state(at(59)), BreakerState::Open, "a request from before it opened does not close it");
        assert_eq!(circuit.state(at(60)), BreakerState::HalfOpen);
        assert_eq!(circuit.allow(SETTINGS, at(60)), Ok(()));
        assert_eq!(circuit.allow(SETTINGS, at(61)), Err(BreakerOpen { retry_after: at(59) }), "one at a time");
        circuit.record(RequestSource::Probe, Failed, SETTINGS, at(62));
        assert_eq!((circuit.state(at(62)), circuit.trial_in(at(62))), (BreakerState::Open, Some(at(60))));
        assert_eq!(circuit.allow(SETTINGS, at(122)), Ok(()));
        assert_eq!(circuit.allow(SETTINGS, at(182)), Ok(()), "a trial that was never recorded blocks no other");
        circuit.record(RequestSource::Probe, Answered, SETTINGS, at(183));
        assert_eq!((circuit.state(at(183)), circuit.trial_in(at(183))), (BreakerState::Closed, None));
    }

    #[test]
    fn an_outage_is_told_once_however_many_trials_fail() {
        let clock = switchboard_engine::clock::SimulatedClock::at(switchboard_a2a::Timestamp(0));
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        let breaker = CircuitBreaker::new(SETTINGS, Arc::new(clock.clone()), move |state| heard.lock().push(state));
        let fail = || breaker.record(RequestSource::Probe, Failed);
        (0..5).for_each(|_| fail());
        for _ in 0..3 {
            clock.advance(SETTINGS.open);
            assert_eq!(breaker.allow(), Ok(()));
            fail();
        }
        clock.advance(SETTINGS.open);
        assert_eq!(breaker.allow(), Ok(()));
        breaker.record(RequestSource::Probe, Answered);
        assert_eq!(*told.lock(), [BreakerState::Open, BreakerState::Closed]);
    }

    proptest::proptest! {
        /// Whatever happens, it lets requests through again, and never opens on the failures of one task alone.
        #[test]
        fn it_recovers_from_everything(steps in proptest::collection::vec((0u64..400, 0u8..4, 0u8..3), 0..60)) {
            let outcome = |number| [Answered, Failed, NotSent][usize::from(number)];
            let mut steps: Vec<_> = steps.into_iter().map(|(at, source, number)| (at, source, outcome(number))).collect();
            steps.sort_by_key(|(at, ..)| *at);
            let end = steps.last().map_or(0, |(at, ..)| *at);
            steps.push((end + 60, 0, Answered));
            proptest::prop_assert_eq!(play(&steps).last().copied(), Some(BreakerState::Closed));
            let one: Vec<_> = steps.iter().map(|(at, _, outcome)| (*at, 1, *outcome)).collect();
            proptest::prop_assert!(play(&one).iter().all(|state| *state == BreakerState::Closed));
        }
    }
}
