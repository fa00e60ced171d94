//! The server's metrics, all names in one place.

pub(crate) const AGENT_UP: &str = "a2a_agent_up";
pub(crate) const REQUESTS: &str = "a2a_requests_total";
pub(crate) const FRONT_REQUESTS: &str = "a2a_front_requests_total";
pub(crate) const REQUEST_DURATION: &str = "a2a_request_duration_seconds";
pub(crate) const STREAM_SUBSCRIBERS: &str = "a2a_stream_subscribers";
pub(crate) const RESPONSE_BYTES: &str = "a2a_response_bytes";
pub(crate) const WAITING_RESPONSES: &str = "a2a_waiting_responses";
pub(crate) const CONNECTIONS: &str = "a2a_connections";
pub(crate) const REFUSED_CONNECTIONS: &str = "a2a_refused_connections_total";
pub(crate) const UNREAD_CONNECTIONS: &str = "a2a_unread_connections_total";
pub(crate) const FAILED_HANDSHAKES: &str = "a2a_failed_handshakes_total";

/// The description of each metric, for the exporter.
const DESCRIPTIONS: &[(&str, &str)] = &[
    (AGENT_UP, "1 for every agent that is served, 0 for one elsewhere while it is down"),
    (REQUESTS, "A2A requests by operation, agent and outcome"),
    (FRONT_REQUESTS, "Requests to endpoints beside A2A, by front and HTTP status"),
    (REQUEST_DURATION, "Seconds from a request's headers to its response's headers"),
    (STREAM_SUBSCRIBERS, "Open event streams"),
    (RESPONSE_BYTES, "Bytes of responses in flight: rendered, or about to be, and not yet taken by their clients"),
    (WAITING_RESPONSES, "Responses that wait for other responses of their caller to be read, or for their turn"),
    (CONNECTIONS, "Open connections"),
    (REFUSED_CONNECTIONS, "Connections turned away because of limits.connections or limits.connectionsPerAddress"),
    (UNREAD_CONNECTIONS, "Connections cut because their client took none of an answer for server.writeTimeout"),
    (FAILED_HANDSHAKES, "Connections that ended before TLS was agreed on"),
];

/// Describes the metrics of the server, the kernel and the webhooks.
pub fn describe_metrics() {
    for (name, description) in DESCRIPTIONS.iter().chain(switchboard_engine::metric_definitions::DESCRIPTIONS) {
        match () {
            () if name.ends_with("_total") => metrics::describe_counter!(*name, *description),
            () if name.ends_with("_seconds") => metrics::describe_histogram!(*name, *description),
            () => metrics::describe_gauge!(*name, *description),
        }
    }
    switchboard_webhooks::metric_definitions::describe_metrics();
}

/// Counts one in a gauge for as long as it lives.
pub(crate) struct GaugeGuard(&'static str);

impl GaugeGuard {
    pub(crate) fn new(gauge: &'static str) -> Self {
        metrics::gauge!(gauge).increment(1.0);
        Self(gauge)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        metrics::gauge!(self.0).decrement(1.0);
    }
}
