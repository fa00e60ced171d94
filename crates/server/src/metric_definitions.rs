//! The server's metrics, all names in one place, and the recorder that renders every crate's metrics.

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// Hosted agents, 1 each.
pub const AGENT_UP: &str = "a2a_agent_up";
/// A2A requests by operation, agent and outcome.
pub const REQUESTS: &str = "a2a_requests_total";
/// From a request's headers to its response's headers, by operation.
pub const REQUEST_DURATION: &str = "a2a_request_duration_seconds";
/// Open event streams.
pub const STREAM_SUBSCRIBERS: &str = "a2a_stream_subscribers";
/// Bytes of responses that are rendered, or about to be, and not yet taken by their clients.
pub const RESPONSE_BYTES: &str = "a2a_response_bytes";
/// Responses that wait until clients of their caller have read others, or for their turn to be rendered.
pub const WAITING_RESPONSES: &str = "a2a_waiting_responses";
/// Open connections.
pub const CONNECTIONS: &str = "a2a_connections";
/// Connections turned away because too many were open.
pub const REFUSED_CONNECTIONS: &str = "a2a_refused_connections_total";
/// Connections cut because their client took none of an answer for too long.
pub const UNREAD_CONNECTIONS: &str = "a2a_unread_connections_total";
/// Connections that ended before TLS was agreed on.
pub const FAILED_HANDSHAKES: &str = "a2a_failed_handshakes_total";

/// The description of each metric, for the exporter.
pub const DESCRIPTIONS: &[(&str, &str)] = &[
    (AGENT_UP, "1 for every agent that is served"),
    (REQUESTS, "A2A requests by operation, agent and outcome"),
    (REQUEST_DURATION, "Seconds from a request's headers to its response's headers"),
    (STREAM_SUBSCRIBERS, "Open event streams"),
    (RESPONSE_BYTES, "Bytes of responses in flight: rendered, or about to be, and not yet taken by their clients"),
    (WAITING_RESPONSES, "Responses that wait for other responses of their caller to be read, or for their turn"),
    (CONNECTIONS, "Open connections"),
    (REFUSED_CONNECTIONS, "Connections turned away because of limits.connections or limits.connectionsPerAddress"),
    (UNREAD_CONNECTIONS, "Connections cut because their client took none of an answer for server.writeTimeout"),
    (FAILED_HANDSHAKES, "Connections that ended before TLS was agreed on"),
];

/// Seconds; fine where an answer takes no work, wide enough for a blocked sender's hour.
const BUCKETS: &[f64] = &[
    0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    300.0, 1_800.0, 3_600.0,
];

/// Why the metrics of this process cannot be collected.
#[derive(Debug, thiserror::Error)]
#[error("metrics cannot be collected: {0}, install them once per process")]
pub struct MetricsError(#[from] BuildError);

/// Makes this process collect its metrics. Once per process, before the server starts.
pub fn install_metrics() -> Result<PrometheusHandle, MetricsError> {
    let builder = PrometheusBuilder::new();
    let builder = builder.set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), BUCKETS)?;
    let handle = builder.install_recorder()?;
    describe_metrics();
    Ok(handle)
}

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
