//! The circuit breaker of a remote agent: after transport failures in a row it opens and requests fail at once, until one
//! trial request shows that the agent is back.
//!
//! What the agent refuses is an answer and closes it. The failures must be of two tasks or probes at least: a task whose
//! own request breaks the agent must not cut off all others.

mod outcome;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_a2a::TaskId;
use switchboard_engine::clock::Clock;

pub use self::outcome::RequestOutcome;

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

    /// Asked before each request. How a request that was let through has ended is recorded with its permit.
    pub fn allow(&self) -> Result<BreakerPermit<'_>, BreakerOpen> {
        let generation = self.change(|circuit, settings, now| circuit.allow(settings, now))?;
        Ok(BreakerPermit { breaker: self, generation })
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

/// A request that was let through. A trial that ends without an outcome is dropped, and another one is let through.
#[must_use = "dropped, it says nothing of the request"]
pub struct BreakerPermit<'a> {
    breaker: &'a CircuitBreaker,
    generation: u64,
}

impl BreakerPermit<'_> {
    /// Records how the request went. A stream is recorded when it has opened and again when it is lost.
    pub fn record(&self, source: RequestSource<'_>, outcome: RequestOutcome) {
        self.breaker.change(|circuit, settings, now| circuit.record(self.generation, source, outcome, settings, now));
    }
}

impl Drop for BreakerPermit<'_> {
    fn drop(&mut self) {
        self.breaker.change(|circuit, _, now| circuit.release(self.generation, now));
    }
}

/// The state machine, without a clock of its own.
#[derive(Debug, Default)]
struct Circuit {
    phase: Phase,
    /// Counts how often it has opened, and the trials. What was let through in an earlier one says nothing of the agent now.
    generation: u64,
}

#[derive(Debug)]
enum Phase {
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

impl Default for Phase {
    fn default() -> Self {
        Self::Closed(Failures::default())
    }
}

impl Circuit {
    /// The stored state; [`Self::state`] also looks at the time.
    fn phase(&self) -> BreakerState {
        match self.phase {
            Phase::Closed(_) => BreakerState::Closed,
            Phase::Open { .. } => BreakerState::Open,
            Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    fn state(&self, now: Duration) -> BreakerState {
        match self.phase {
            Phase::Open { until } if until <= now => BreakerState::HalfOpen,
            _ => self.phase(),
        }
    }

    fn trial_in(&self, now: Duration) -> Option<Duration> {
        match self.phase {
            Phase::Closed(_) => None,
            Phase::Open { until } | Phase::HalfOpen { trial_until: until } => Some(until.saturating_sub(now)),
        }
    }

    /// Lets a request through, and says in which generation.
    fn allow(&mut self, settings: BreakerSettings, now: Duration) -> Result<u64, BreakerOpen> {
        let retry_after = self.trial_in(now).unwrap_or_default();
        if !retry_after.is_zero() {
            return Err(BreakerOpen { retry_after });
        }
        if !matches!(self.phase, Phase::Closed(_)) {
            self.phase = Phase::HalfOpen { trial_until: now + settings.open };
            self.generation += 1;
        }
        Ok(self.generation)
    }

    fn record(
        &mut self,
        generation: u64,
        source: RequestSource<'_>,
        outcome: RequestOutcome,
        settings: BreakerSettings,
        now: Duration,
    ) {
        if generation != self.generation {
            return;
        }
        match (&mut self.phase, outcome) {
            (_, RequestOutcome::NotSent) | (Phase::Open { .. }, _) => {}
            (_, RequestOutcome::Answered) => self.phase = Phase::default(),
            (Phase::HalfOpen { .. }, RequestOutcome::Failed) => self.open(settings, now),
            (Phase::Closed(failures), RequestOutcome::Failed) => {
                failures.add(source);
                if failures.count >= settings.failures && failures.several {
                    self.open(settings, now);
                }
            }
        }
    }

    fn open(&mut self, settings: BreakerSettings, now: Duration) {
        self.phase = Phase::Open { until: now + settings.open };
        self.generation += 1;
    }

    /// Gives a permit back. If it was a trial of which nothing was recorded, the next request is the trial.
    fn release(&mut self, generation: u64, now: Duration) {
        if generation == self.generation && matches!(self.phase, Phase::HalfOpen { .. }) {
            self.phase = Phase::Open { until: now };
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

    /// Plays `(second, source, outcome)` of requests that end at once, if they are let through; source 0 is a probe, others
    /// are tasks. Says the state after each.
    fn play(steps: &[(u64, u8, RequestOutcome)]) -> Vec<BreakerState> {
        let at_once: Vec<_> = steps.iter().map(|(second, source, outcome)| (*second, *source, *outcome, 0)).collect();
        play_late(&at_once)
    }

    /// The same of requests that end some steps later, and before the last one.
    fn play_late(steps: &[(u64, u8, RequestOutcome, usize)]) -> Vec<BreakerState> {
        let mut circuit = Circuit::default();
        let tasks: Vec<TaskId> = (0..10).map(|number| TaskId::from(format!("task-{number}"))).collect();
        let (mut states, mut under_way) = (Vec::new(), Vec::new());
        for (index, (second, source, outcome, late)) in steps.iter().enumerate() {
            let source = match source {
                0 => RequestSource::Probe,
                number => RequestSource::Task(&tasks[usize::from(*number)]),
            };
            if let Ok(generation) = circuit.allow(SETTINGS, at(*second)) {
                let ends = (index + late).min(steps.len() - 1);
                under_way.push((ends, generation, source, *outcome));
            }
            for (_, generation, source, outcome) in under_way.extract_if(.., |(ends, ..)| *ends == index) {
                circuit.record(generation, source, outcome, SETTINGS, at(*second));
                circuit.release(generation, at(*second));
            }
            states.push(circuit.state(at(*second)));
        }
        states
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
        let mut circuit = Circuit::default();
        circuit.open(SETTINGS, at(0));
        assert_eq!(circuit.allow(SETTINGS, at(59)), Err(BreakerOpen { retry_after: at(1) }));
        assert_eq!((circuit.state(at(59)), circuit.state(at(60))), (BreakerState::Open, BreakerState::HalfOpen));
        let failing = circuit.allow(SETTINGS, at(60)).unwrap();
        assert_eq!(circuit.allow(SETTINGS, at(61)), Err(BreakerOpen { retry_after: at(59) }), "one at a time");
        circuit.record(failing, RequestSource::Probe, Failed, SETTINGS, at(62));
        circuit.release(failing, at(62));
        assert_eq!((circuit.state(at(62)), circuit.trial_in(at(62))), (BreakerState::Open, Some(at(60))));
        let slow = circuit.allow(SETTINGS, at(122)).unwrap();
        let next = circuit.allow(SETTINGS, at(182)).unwrap();
        circuit.record(slow, RequestSource::Probe, Failed, SETTINGS, at(183));
        circuit.release(slow, at(183));
        assert_eq!(circuit.state(at(183)), BreakerState::HalfOpen, "a trial that takes too long blocks no other");
        circuit.record(next, RequestSource::Probe, Answered, SETTINGS, at(184));
        assert_eq!((circuit.state(at(184)), circuit.trial_in(at(184))), (BreakerState::Closed, None));
    }

    #[test]
    fn requests_from_before_it_opened_decide_nothing_and_a_trial_that_was_no_request_is_due_again() {
        let clock = switchboard_engine::clock::SimulatedClock::at(switchboard_a2a::Timestamp(0));
        let breaker = CircuitBreaker::new(SETTINGS, Arc::new(clock.clone()), |_| {});
        let late = [breaker.allow().unwrap(), breaker.allow().unwrap(), breaker.allow().unwrap()];
        (0..5).for_each(|_| breaker.allow().unwrap().record(RequestSource::Probe, Failed));
        clock.advance(SETTINGS.open);
        let trial = breaker.allow().unwrap();
        late[0].record(RequestSource::Probe, Failed);
        assert_eq!(breaker.state(), BreakerState::HalfOpen, "a late failure does not open it again");
        late[1].record(RequestSource::Probe, Answered);
        assert_eq!(breaker.state(), BreakerState::HalfOpen, "a late answer does not close it");
        drop(late);
        assert!(breaker.allow().is_err(), "nor is the trial over");
        drop(trial);
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        let trial = breaker.allow().expect("the dropped one was no request");
        trial.record(RequestSource::Probe, NotSent);
        drop(trial);
        let trial = breaker.allow().expect("nor was one that was not sent");
        trial.record(RequestSource::Probe, Answered);
        assert_eq!(breaker.state(), BreakerState::Closed);
        // It was a stream, and its loss counts as any other.
        trial.record(RequestSource::Probe, Failed);
        drop(trial);
        (0..4).for_each(|_| breaker.allow().unwrap().record(RequestSource::Probe, Failed));
        assert_eq!(breaker.state(), BreakerState::Open);
    }

    #[test]
    fn an_outage_is_told_once_however_many_trials_fail() {
        let clock = switchboard_engine::clock::SimulatedClock::at(switchboard_a2a::Timestamp(0));
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        let breaker = CircuitBreaker::new(SETTINGS, Arc::new(clock.clone()), move |state| heard.lock().push(state));
        (0..5).for_each(|_| breaker.allow().unwrap().record(RequestSource::Probe, Failed));
        for _ in 0..3 {
            clock.advance(SETTINGS.open);
            breaker.allow().unwrap().record(RequestSource::Probe, Failed);
        }
        clock.advance(SETTINGS.open);
        breaker.allow().unwrap().record(RequestSource::Probe, Answered);
        assert_eq!(*told.lock(), [BreakerState::Open, BreakerState::Closed]);
    }

    proptest::proptest! {
        /// Whatever happens, it lets requests through again, and never opens on the failures of one task alone.
        #[test]
        fn it_recovers_from_everything(
            steps in proptest::collection::vec((0u64..400, 0u8..4, 0u8..3, 0usize..8), 0..60),
        ) {
            let outcome = |number| [Answered, Failed, NotSent][usize::from(number)];
            let mut steps: Vec<_> =
                steps.into_iter().map(|(at, source, number, late)| (at, source, outcome(number), late)).collect();
            steps.sort_by_key(|(at, ..)| *at);
            let end = steps.last().map_or(0, |(at, ..)| *at);
            // What is under way ends before the last request but one, and may open it once more.
            steps.extend([(end, 0, NotSent, 0), (end + 60, 0, Answered, 0)]);
            let last = steps.len() - 2;
            for (index, (.., late)) in steps.iter_mut().enumerate() {
                *late = (*late).min(last.saturating_sub(index));
            }
            proptest::prop_assert_eq!(play_late(&steps).last().copied(), Some(BreakerState::Closed));
            let one: Vec<_> = steps.iter().map(|(at, _, outcome, late)| (*at, 1, *outcome, *late)).collect();
            proptest::prop_assert!(play_late(&one).iter().all(|state| *state == BreakerState::Closed));
        }
    }
}
