//! The exporter behind `/metrics`: collects the metrics of every crate and renders them in the text format of
//! Prometheus.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder};
use switchboard_server::RenderMetrics;

/// Seconds; fine where an answer takes no work, wide enough for a blocked sender's hour.
const BUCKETS: &[f64] = &[
    0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    300.0, 1_800.0, 3_600.0,
];

/// How often collected samples are folded into their buckets when nothing reads the metrics.
const UPKEEP: Duration = Duration::from_secs(5);

/// Why the metrics of this process cannot be collected.
#[derive(Debug, thiserror::Error)]
pub(super) enum MetricsError {
    #[error("metrics cannot be collected: {0}, install them once per process")]
    Recorder(#[from] BuildError),
    #[error("metrics cannot be collected: no thread could be started: {0}")]
    Thread(#[from] io::Error),
}

/// Makes this process collect its metrics. Once per process, before the server starts.
pub(super) fn install() -> Result<RenderMetrics, MetricsError> {
    let builder = PrometheusBuilder::new();
    let builder = builder.set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), BUCKETS)?;
    let handle = builder.install_recorder()?;
    switchboard_server::describe_metrics();
    switchboard_store::describe_metrics();
    let kept = handle.clone();
    // Of the process, like the recorder: it outlives the server and its runtime.
    thread::Builder::new().name("metrics".to_owned()).spawn(move || {
        loop {
            thread::sleep(UPKEEP);
            kept.run_upkeep();
        }
    })?;
    Ok(RenderMetrics(Arc::new(move || handle.render())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_recorder_per_process() {
        // Another test of this process may have been first.
        let _ = install();
        let error = install().err().unwrap().to_string();
        assert!(error.ends_with("install them once per process"), "{error}");
    }
}
