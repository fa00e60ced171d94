//! The names of this crate's metrics, and what each of them says.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

pub(crate) const REMOTE_SENDS: &str = "switchboard_remote_sends_total";
pub(crate) const REMOTE_LOOKS: &str = "switchboard_remote_looks_total";
pub(crate) const BREAKER_OPEN: &str = "switchboard_breaker_open";
pub(crate) const REMOTE_ATTACHED: &str = "switchboard_remote_attached";
pub(crate) const CONSUMER_LAG: &str = "switchboard_consumer_lag_seconds";
pub(crate) const CONSUMER_HOLDER: &str = "switchboard_consumer_holder";
pub(crate) const JOBS_OWED: &str = "switchboard_jobs_owed";
pub(crate) const JOURNAL_LINES_LEFT_OUT: &str = "switchboard_journal_lines_left_out_total";
pub(crate) const ALERTS_FIRING: &str = "switchboard_alerts_firing";
pub(crate) const FANOUT_CHILDREN: &str = "switchboard_fanout_children_total";
pub(crate) const CHANNEL_MESSAGES: &str = "switchboard_channel_messages_total";
pub(crate) const CHANNEL_CALLS: &str = "switchboard_channel_calls_total";
pub(crate) const ROUTED: &str = "switchboard_routed_total";
pub(crate) const DISPATCH_DROPPED: &str = "switchboard_dispatch_dropped_total";
pub(crate) const INBOX_OPEN: &str = "switchboard_inbox_open";
pub(crate) const INBOX_DECISIONS: &str = "switchboard_inbox_decisions_total";
pub(crate) const INBOX_WAIT: &str = "switchboard_inbox_wait_seconds";
pub(crate) const ROUTE_EVENTS: &str = "switchboard_route_events_total";
pub(crate) const GATES: &str = "switchboard_gates_total";
pub(crate) const CEREMONY_FIRES: &str = "switchboard_ceremony_fires_total";
pub(crate) const CEREMONY_LATE: &str = "switchboard_ceremony_late_seconds";

/// Tells the recorder what they mean.
pub fn describe_metrics() {
    describe_counter!(REMOTE_SENDS, "Messages to remote agents, by agent and outcome");
    describe_counter!(REMOTE_LOOKS, "Looks at remote tasks beside their streams, by agent and cause");
    describe_counter!(FANOUT_CHILDREN, "Ended children of fan-outs, by policy and outcome");
    describe_counter!(
        CHANNEL_MESSAGES,
        "Messages of channels, by what became of them (began, joined, repeated, refused)"
    );
    describe_counter!(CHANNEL_CALLS, "Ended tasks that channels have begun with what was said, by outcome");
    describe_gauge!(BREAKER_OPEN, "1 while the circuit breaker of a remote agent is open, by agent");
    describe_gauge!(REMOTE_ATTACHED, "Remote tasks that are followed, by agent");
    describe_gauge!(CONSUMER_LAG, "How far a durable reader of all rows is behind the newest one");
    describe_gauge!(CONSUMER_HOLDER, "1 for a durable reader that this process runs");
    describe_gauge!(JOBS_OWED, "Jobs that are owed, due or not, by kind");
    describe_counter!(JOURNAL_LINES_LEFT_OUT, "Lines that were too long for the journal, and are not in it");
    describe_counter!(ROUTE_EVENTS, "Events of routes, by what is done for them (send, post) and outcome");
    describe_gauge!(
        INBOX_OPEN,
        "Questions that wait for an answer, by stage: asked less than hub.inbox.callerFirst ago (caller), all others (operator)"
    );
    describe_counter!(INBOX_DECISIONS, "Questions that were decided, by decision and the way it came (api, a2a, time)");
    describe_histogram!(INBOX_WAIT, Unit::Seconds, "Time from a question to its decision");
    describe_counter!(GATES, "Turns at the gates of agents, by mode and what has come of it");
    describe_counter!(CEREMONY_FIRES, "Times of ceremonies that have come, by outcome, and manual runs");
    describe_histogram!(CEREMONY_LATE, Unit::Seconds, "How late runs of ceremonies begin");
    describe_gauge!(ALERTS_FIRING, "Alerts that fire now");
    describe_counter!(ROUTED, "Messages at the root address that got an agent, by what has decided");
    describe_counter!(DISPATCH_DROPPED, "Messages at the root address that were refused, by reason");
}
