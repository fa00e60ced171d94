//! The readers of the log with a durable place in it: how far each of them is behind, for operators and metrics.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;

use crate::metric_definitions as metric;

/// The consumers that this process runs, and how far each is behind the newest row.
#[derive(Debug, Default)]
pub(crate) struct Consumers(Mutex<BTreeMap<&'static str, Duration>>);

impl Consumers {
    /// This process holds a consumer, which is as far behind as it says.
    pub(crate) fn report(&self, name: &'static str, lag: Duration) {
        self.0.lock().insert(name, lag);
        metrics::gauge!(metric::CONSUMER_LAG, "consumer" => name).set(lag.as_secs_f64());
        metrics::gauge!(metric::CONSUMER_HOLDER, "consumer" => name).set(1.0);
    }

    /// This process does not hold it any more.
    pub(crate) fn release(&self, name: &'static str) {
        self.0.lock().remove(name);
        metrics::gauge!(metric::CONSUMER_HOLDER, "consumer" => name).set(0.0);
    }

    /// How far each is behind.
    pub(crate) fn lags(&self) -> BTreeMap<&'static str, Duration> {
        self.0.lock().clone()
    }
}
