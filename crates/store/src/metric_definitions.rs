//! The store's metrics, all names in one place.

use metrics::{describe_gauge, describe_histogram};

/// How long a shared commit took, from its first statement to the end of the commit.
pub const COMMIT_SECONDS: &str = "switchboard_store_commit_seconds";
/// How many appends shared a commit.
pub const COMMIT_APPENDS: &str = "switchboard_store_commit_appends";
/// How many writes had come while the last commit was made, and wait for the next.
pub const QUEUE_DEPTH: &str = "switchboard_store_queue_depth";
/// How long the oldest write of a commit had waited before the writer took it.
pub const QUEUE_DELAY_SECONDS: &str = "switchboard_store_queue_delay_seconds";

/// What each metric tells, for the exporter.
pub const DESCRIPTIONS: &[(&str, &str)] = &[
    (COMMIT_SECONDS, "Seconds of one shared commit"),
    (COMMIT_APPENDS, "Appends that shared one commit"),
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
