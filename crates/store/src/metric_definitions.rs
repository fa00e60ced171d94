//! The store's metrics, all names in one place.

use metrics::{describe_gauge, describe_histogram};

pub(crate) const COMMIT_SECONDS: &str = "switchboard_store_commit_seconds";
pub(crate) const COMMIT_APPENDS: &str = "switchboard_store_commit_appends";
pub(crate) const CHECKPOINT_HOLD_SECONDS: &str = "switchboard_store_checkpoint_hold_seconds";
pub(crate) const QUEUE_DEPTH: &str = "switchboard_store_queue_depth";
pub(crate) const QUEUE_DELAY_SECONDS: &str = "switchboard_store_queue_delay_seconds";

/// What each metric tells, for the exporter.
pub const DESCRIPTIONS: &[(&str, &str)] = &[
    (COMMIT_SECONDS, "Seconds of one shared commit"),
    (COMMIT_APPENDS, "Appends that shared one commit"),
    (CHECKPOINT_HOLD_SECONDS, "Seconds the writer waited for the end of a checkpoint"),
    (QUEUE_DEPTH, "Writes that waited for the writer when the last commit was done"),
    (QUEUE_DELAY_SECONDS, "Seconds the oldest write of a commit had waited"),
];

/// Tells the installed recorder what the store's metrics mean.
pub fn describe_metrics() {
    for (name, description) in DESCRIPTIONS {
        match *name {
            QUEUE_DEPTH => describe_gauge!(*name, *description),
            _ => describe_histogram!(*name, *description),
        }
    }
}
