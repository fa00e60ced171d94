//! Request metrics. The counters of one combination of labels are looked up once and kept, because making a labelled
//! metric costs more than counting it.

use std::collections::HashMap;
use std::time::Duration;

use metrics::{Counter, Histogram, SharedString};
use parking_lot::RwLock;
use switchboard_engine::AgentName;

use crate::metric_definitions as metric;

/// The labels of a request. A binding puts them into the body of its response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestLabels {
    /// The operation's v1.0 name, `card`, `openapi`, or `unknown`.
    pub(crate) method: &'static str,
    /// The agent that was called, once it is known to exist.
    pub(crate) agent: Option<AgentName>,
    /// `ok`, or the reason of the error in lower case.
    pub(crate) outcome: &'static str,
}

#[derive(Default)]
pub(crate) struct RequestMetrics {
    /// Labels come from fixed lists and the served agents, so this stays small.
    handles: RwLock<HashMap<RequestLabels, (Counter, Histogram)>>,
}

impl RequestMetrics {
    pub(crate) fn count(&self, labels: RequestLabels, duration: Duration) {
        let count = |(requests, durations): &(Counter, Histogram)| {
            requests.increment(1);
            durations.record(duration.as_secs_f64());
        };
        if let Some(handles) = self.handles.read().get(&labels) {
            return count(handles);
        }
        let (method, outcome) = (labels.method, labels.outcome);
        let agent: SharedString = labels.agent.as_ref().map_or("", AgentName::as_str).to_owned().into();
        let handles = (
            metrics::counter!(metric::REQUESTS, "method" => method, "agent" => agent, "outcome" => outcome),
            metrics::histogram!(metric::REQUEST_DURATION, "method" => method),
        );
        count(&handles);
        self.handles.write().insert(labels, handles);
    }
}
