//! The clock is passed in, so that tests turn a simulated one instead of sleeping.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use switchboard_a2a::Timestamp;
use tokio::sync::oneshot;

/// Tells the time and waits for it.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Timestamp;
    /// Time that has passed since some moment in the past, which no step of the clock changes.
    fn monotonic(&self) -> Duration;
    /// Resolves when the time has come; at once if it has passed.
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()>;

    /// Resolves after a while.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.sleep_until(later(self.now(), duration))
    }
}

/// The last time that can be written: in the last days of the year 9999.
const LATEST: i64 = 253_402_207_200_000;

/// A point in time that lies `duration` after another, or as late as can be written.
pub fn later(from: Timestamp, duration: Duration) -> Timestamp {
    let milliseconds = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    Timestamp(from.0.saturating_add(milliseconds).min(LATEST))
}

/// A point in time that lies `duration` before another.
pub fn earlier(from: Timestamp, duration: Duration) -> Timestamp {
    let milliseconds = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    Timestamp(from.0.saturating_sub(milliseconds))
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        let milliseconds = u64::try_from(at.0.saturating_sub(self.now().0)).unwrap_or(0);
        tokio::time::sleep(Duration::from_millis(milliseconds)).boxed()
    }
}

/// A clock that stands still until it is turned.
#[derive(Clone, Debug, Default)]
pub struct SimulatedClock {
    state: Arc<Mutex<Simulated>>,
}

#[derive(Debug, Default)]
struct Simulated {
    now: i64,
    passed: Duration,
    sleepers: Vec<(i64, oneshot::Sender<()>)>,
}

impl SimulatedClock {
    /// A clock that shows the given time.
    pub fn at(now: Timestamp) -> Self {
        let clock = Self::default();
        clock.state.lock().now = now.0;
        clock
    }

    /// Turns the clock on and wakes the sleepers whose time has come.
    pub fn advance(&self, duration: Duration) {
        self.state.lock().passed += duration;
        self.turn_to(later(self.now(), duration));
    }

    /// Sets the clock, back too, without any time passing, and wakes the sleepers whose time has come.
    pub fn turn_to(&self, now: Timestamp) {
        let mut state = self.state.lock();
        state.now = now.0;
        let now = state.now;
        let sleepers = std::mem::take(&mut state.sleepers);
        for (at, sleeper) in sleepers {
            if at <= now {
                // A sleeper that no longer waits is no error.
                let _ = sleeper.send(());
            } else {
                state.sleepers.push((at, sleeper));
            }
        }
    }

    /// How many wait for a later time.
    pub fn sleepers(&self) -> usize {
        let mut state = self.state.lock();
        state.sleepers.retain(|(_, sleeper)| !sleeper.is_closed());
        state.sleepers.len()
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.state.lock().now)
    }

    fn monotonic(&self) -> Duration {
        self.state.lock().passed
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        let mut state = self.state.lock();
        if at.0 <= state.now {
            return std::future::ready(()).boxed();
        }
        let (sender, receiver) = oneshot::channel();
        state.sleepers.push((at.0, sender));
        receiver.map(|_| ()).boxed()
    }
}
