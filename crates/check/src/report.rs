//! The report: what was checked and what came of it, for people and for programs.

use serde::Serialize;

use crate::agent::TestedAgent;
use crate::checks::{Check, Group, Severity};
use crate::verdict::Verdict;

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It is as it should be.
    Pass,
    /// It is not.
    Fail,
    /// It cannot be told, or need not be true, of this agent.
    NotApplicable,
}

/// One check and what came of it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The check's name, such as `list-order`.
    pub id: &'static str,
    /// What it belongs to.
    pub group: Group,
    /// What is true where it passes.
    pub title: &'static str,
    /// Where that is demanded.
    pub rule: &'static str,
    /// How strongly.
    pub severity: Severity,
    /// What came of it.
    pub outcome: Outcome,
    /// What the agent was asked, where it failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sent: String,
    /// What came back, where it failed; why not, where it does not apply.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub seen: String,
    /// What to do, where it failed.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub fix: &'static str,
}

impl Finding {
    /// The one place where what agents say enters the report, and our secrets do not.
    pub(crate) fn new(check: &'static Check, verdict: &Verdict, agent: &TestedAgent) -> Self {
        let Check { id, group, title, rule, severity, fix, .. } = *check;
        let fix = if verdict.is_failure() { fix } else { "" };
        let (sent, seen) = (agent.sanitize_line(&verdict.sent), agent.sanitize_line(&verdict.seen));
        Self { id, group, title, rule, severity, outcome: verdict.outcome, sent, seen, fix }
    }
}

/// How many came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// As they should be.
    pub pass: usize,
    /// Broken demands.
    pub fail_must: usize,
    /// Advice that is not followed.
    pub fail_should: usize,
    /// What could be better.
    pub fail_quality: usize,
    /// What does not apply.
    pub not_applicable: usize,
}

/// All that was found out about an agent.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Its name, as its card has it.
    pub agent: String,
    /// Where the card was found.
    pub card_url: String,
    /// What was called: binding, version and address.
    pub interfaces: Vec<String>,
    /// The checks, in order.
    pub findings: Vec<Finding>,
    /// How many came to what.
    pub counts: Counts,
    /// Whether all checks were made that were to be made.
    pub complete: bool,
}

impl Report {
    pub(crate) fn new(agent: String, card_url: String, interfaces: Vec<String>, findings: Vec<Finding>) -> Self {
        let mut counts = Counts::default();
        for finding in &findings {
            let count = match (finding.outcome, finding.severity) {
                (Outcome::Pass, _) => &mut counts.pass,
                (Outcome::NotApplicable, _) => &mut counts.not_applicable,
                (Outcome::Fail, Severity::Must) => &mut counts.fail_must,
                (Outcome::Fail, Severity::Should) => &mut counts.fail_should,
                (Outcome::Fail, Severity::Quality) => &mut counts.fail_quality,
            };
            *count += 1;
        }
        Self { agent, card_url, interfaces, findings, counts, complete: true }
    }

    /// What is known where it was stopped.
    pub(crate) fn stopped(self) -> Self {
        Self { complete: false, ..self }
    }

    /// Whether a demand is broken; if it is strict, also whether advice is not followed.
    pub fn failed(&self, strict: bool) -> bool {
        self.counts.fail_must > 0 || strict && self.counts.fail_should > 0
    }
}
