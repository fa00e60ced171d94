//! `hub.inbox`: questions that wait for an answer.

use serde::Serialize;

use crate::config::time_span::TimeSpan;
use crate::section_keys;

/// Questions that wait for an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Inbox {
    /// How long a question is its caller's to answer before it is the operators' too.
    pub caller_first: TimeSpan,
    /// How long a program that asks a person is kept waiting for the answer; then it polls.
    pub ask_wait: TimeSpan,
}

section_keys!(Inbox, {
    caller_first (nonzero): TimeSpan::from_minutes(5),
    ask_wait: TimeSpan::from_seconds(110),
});
