//! The store's metrics, all names in one place.

use metrics::{Unit, describe_gauge, describe_histogram};

/// How long a shared commit took, from its first statement to the end of the commit.
pub(crate) const COMMIT_SECONDS: &str = "switchboard_store_commit_seconds";
/// How many appends shared a commit.
pub(crate) const COMMIT_APPENDS: &str = "switchboard_store_commit_appends";
/// How many writes wait for the writer.
pub(crate) const QUEUE_DEPTH: &str = "switchboard_store_queue_depth";
/// How long the oldest write of a commit had waited before the writer took it.
pub(crate) const QUEUE_DELAY_SECONDS: &str = "switchboard_store_queue_delay_seconds";

/// Tells the installed recorder what the store's metrics mean.
pub fn describe_metrics() {
    describe_histogram!(COMMIT_SECONDS, Unit::Seconds, "time of one shared commit");
    describe_histogram!(COMMIT_APPENDS, Unit::Count, "appends that shared one commit");
    describe_gauge!(QUEUE_DEPTH, Unit::Count, "writes that wait for the writer");
    describe_histogram!(QUEUE_DELAY_SECONDS, Unit::Seconds, "wait of the oldest write of a commit");
}
