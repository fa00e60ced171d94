//! `hub.inbox`: questions that wait for an answer.

use serde::Serialize;

use crate::config::review_mode::{MinimumModes, OnTimeout};
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
    /// Time to approve a skill whose mode is `gated` or `compound`, `tasks.parkedExpiry` at most.
    pub gate_ttl: TimeSpan,
    /// What happens after that time.
    ///
    /// `reject`: the task is rejected; `approve`: the skill begins; `escalate`: the question stays open until
    /// `tasks.parkedExpiry`.
    pub on_timeout: OnTimeout,
    /// Time to reject a skill whose mode is `veto`, before it begins.
    pub veto_ttl: TimeSpan,
    /// The least that people take part in a skill, by how far its effects reach.
    ///
    /// It counts where an agent's `policy` names no mode.
    pub minimum: MinimumModes,
}

section_keys!(Inbox, {
    caller_first (nonzero): TimeSpan::from_minutes(5),
    ask_wait: TimeSpan::from_seconds(110),
    gate_ttl (nonzero): TimeSpan::from_minutes(30),
    on_timeout: OnTimeout::Reject,
    veto_ttl (nonzero): TimeSpan::from_seconds(60),
    minimum (section): MinimumModes::default(),
});
