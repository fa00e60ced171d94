//! What one check came to, before it is put beside what it stands for.

use crate::report::Outcome;

/// How many problems of one kind are told; what follows is of the same kind as a rule.
const TOLD: usize = 3;

/// What a check came to.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) outcome: Outcome,
    pub(crate) sent: String,
    pub(crate) seen: String,
    /// The task without which nothing can be told: an agent that has thrown it away is not to blame for what it says of it.
    pub(crate) task: Option<String>,
}

impl Verdict {
    fn new(outcome: Outcome, sent: impl Into<String>, seen: impl Into<String>) -> Self {
        Self { outcome, sent: sent.into(), seen: seen.into(), task: None }
    }

    pub(crate) fn pass() -> Self {
        Self::new(Outcome::Pass, "", "")
    }

    pub(crate) fn fail(sent: impl Into<String>, seen: impl Into<String>) -> Self {
        Self::new(Outcome::Fail, sent, seen)
    }

    /// It cannot be told, or need not be true, of this agent.
    pub(crate) fn not_applicable(why: impl Into<String>) -> Self {
        Self::new(Outcome::NotApplicable, "", why)
    }

    /// Passes if there is nothing to complain of.
    pub(crate) fn of(problems: &[String], sent: impl Into<String>) -> Self {
        if problems.is_empty() {
            return Self::pass();
        }
        let mut seen = problems.iter().take(TOLD).cloned().collect::<Vec<_>>().join("; ");
        if problems.len() > TOLD {
            seen.push_str(&format!("; and {} more like these", problems.len() - TOLD));
        }
        Self::fail(sent, seen)
    }

    /// The same, if the agent still has this task.
    pub(crate) fn about_task(self, task: &str) -> Self {
        Self { task: Some(task.to_owned()), ..self }
    }

    pub(crate) fn is_failure(&self) -> bool {
        self.outcome == Outcome::Fail
    }
}
