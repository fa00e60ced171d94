//! The report: the findings, for people and for programs.

use serde::Serialize;

use crate::agent::TestedAgent;
use crate::checks::{Check, Severity};
use crate::verdict::CheckResult;

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CheckOutcome {
    Pass,
    Fail,
    /// It cannot be determined, or is not demanded, of this agent.
    NotApplicable,
}

/// A check and its outcome.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    #[serde(flatten)]
    pub check: &'static Check,
    pub outcome: CheckOutcome,
    /// The request, where it failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sent: String,
    /// The response, where it failed; the reason, where it does not apply.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub seen: String,
    /// What to do, where it failed.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub fix: &'static str,
}

impl Finding {
    /// The one place where text of the agent enters the report: sanitized, and with our secrets redacted.
    pub(crate) fn new(check: &'static Check, result: CheckResult, agent: &TestedAgent) -> Self {
        let (outcome, fix, sent, seen) = match result {
            Ok(()) => (CheckOutcome::Pass, "", String::new(), String::new()),
            Err(problem) if problem.is_failure => (CheckOutcome::Fail, check.fix, problem.sent, problem.seen),
            Err(problem) => (CheckOutcome::NotApplicable, "", problem.sent, problem.seen),
        };
        let (sent, seen) = (agent.sanitize_line(&sent), agent.sanitize_line(&seen));
        Self { check, outcome, sent, seen, fix }
    }
}

/// How many findings have which outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub pass: usize,
    /// Broken demands.
    pub fail_must: usize,
    /// Advice that is not followed.
    pub fail_should: usize,
    /// What could be better.
    pub fail_quality: usize,
    pub not_applicable: usize,
}

/// The findings about one agent.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    /// Its name, as its card has it.
    pub agent: String,
    /// Where the card was found.
    pub card_url: String,
    /// What was called: binding, version and address.
    pub interfaces: Vec<String>,
    pub findings: Vec<Finding>,
    pub counts: Counts,
    /// False if checking was stopped before the last check.
    pub complete: bool,
}

impl CheckReport {
    pub(crate) fn new(agent: String, card_url: String, interfaces: Vec<String>, findings: Vec<Finding>) -> Self {
        let mut counts = Counts::default();
        for finding in &findings {
            let count = match (finding.outcome, finding.check.severity) {
                (CheckOutcome::Pass, _) => &mut counts.pass,
                (CheckOutcome::NotApplicable, _) => &mut counts.not_applicable,
                (CheckOutcome::Fail, Severity::Must) => &mut counts.fail_must,
                (CheckOutcome::Fail, Severity::Should) => &mut counts.fail_should,
                (CheckOutcome::Fail, Severity::Quality) => &mut counts.fail_quality,
            };
            *count += 1;
        }
        Self { agent, card_url, interfaces, findings, counts, complete: true }
    }

    /// The same report, incomplete.
    pub(crate) fn stopped(self) -> Self {
        Self { complete: false, ..self }
    }

    /// Whether a demand is broken; if `strict`, also whether advice is not followed.
    pub fn failed(&self, strict: bool) -> bool {
        self.counts.fail_must > 0 || strict && self.counts.fail_should > 0
    }
}
