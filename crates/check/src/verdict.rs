//! What one check came to, before it is put beside what it stands for.

use crate::report::Outcome;

/// What a check came to.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) outcome: Outcome,
    pub(crate) sent: String,
    pub(crate) seen: String,
}

impl Verdict {
    pub(crate) fn pass() -> Self {
        Self { outcome: Outcome::Pass, sent: String::new(), seen: String::new() }
    }

    pub(crate) fn fail(sent: impl Into<String>, seen: impl Into<String>) -> Self {
        Self { outcome: Outcome::Fail, sent: sent.into(), seen: seen.into() }
    }

    /// It cannot be told, or need not be true, of this agent.
    pub(crate) fn not_applicable(why: impl Into<String>) -> Self {
        Self { outcome: Outcome::NotApplicable, sent: String::new(), seen: why.into() }
    }

    /// Passes if there is nothing to complain of.
    pub(crate) fn of(problems: &[String], sent: impl Into<String>) -> Self {
        if problems.is_empty() { Self::pass() } else { Self::fail(sent, problems.join("; ")) }
    }
}
