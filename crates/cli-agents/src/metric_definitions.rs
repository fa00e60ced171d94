//! The metrics of command-line agents, all names in one place.

/// Running programs.
pub(super) const RUNNING: &str = "switchboard_cli_running";
/// Turns that ended, by how.
pub(super) const TURNS: &str = "switchboard_cli_turns_total";
/// From a program's start to its end.
pub(super) const TURN_DURATION: &str = "switchboard_cli_turn_duration_seconds";
/// Questions of programs, by how they were answered.
pub(super) const APPROVALS: &str = "switchboard_cli_approvals_total";

/// Tells the exporter what each metric means.
pub fn describe_metrics() {
    metrics::describe_gauge!(RUNNING, "Command-line programs that run or wait for an answer");
    metrics::describe_counter!(TURNS, "Turns of command-line programs, by how they ended");
    metrics::describe_histogram!(TURN_DURATION, "Seconds from the start of a command-line program to its end");
    metrics::describe_counter!(APPROVALS, "Questions of command-line programs, by how they were answered");
}
