//! Counts requests. The counters of one combination of labels are looked up once and kept, because making a labelled
//! metric costs more than counting it.

use std::collections::HashMap;
use std::time::Duration;

use metrics::{Counter, Histogram, SharedString};
use parking_lot::RwLock;
use switchboard_engine::AgentName;

use crate::RequestLabels;
use crate::metric_definitions as metric;

/// Counts requests.
#[derive(Default)]
pub(crate) struct RequestMetrics {
    /// Labels come from fixed lists and the served agents, so this stays small.
    handles: RwLock<HashMap<Labels, Handles>>,
}

#[derive(PartialEq, Eq, Hash)]
struct Labels {
    method: &'static str,
    outcome: &'static str,
    agent: Option<AgentName>,
}

struct Handles {
    requests: Counter,
    duration: Histogram,
}

impl Handles {
    fn count(&self, duration: Duration) {
        self.requests.increment(1);
        self.duration.record(duration.as_secs_f64());
    }
}

impl RequestMetrics {
    /// One request is answered.
    pub(crate) fn count(&self, measured: RequestLabels, duration: Duration) {
        let RequestLabels { method, agent, outcome } = measured;
        let labels = Labels { method, outcome, agent };
        if let Some(handles) = self.handles.read().get(&labels) {
            return handles.count(duration);
        }
        let agent: SharedString = labels.agent.as_ref().map_or("", AgentName::as_str).to_owned().into();
        let handles = Handles {
            requests: metrics::counter!(metric::REQUESTS, "method" => method, "agent" => agent, "outcome" => outcome),
            duration: metrics::histogram!(metric::REQUEST_DURATION, "method" => method),
        };
        handles.count(duration);
        self.handles.write().insert(labels, handles);
    }
}
