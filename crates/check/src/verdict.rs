//! How one check ends: `Ok` is a pass, `Err` a failure or the reason why the check does not apply. So a check leaves with
//! `?` as soon as nothing more can be told.

/// How many problems of one kind are reported; what follows is of the same kind as a rule.
const MAX_REPORTED: usize = 3;

/// How a check ends.
pub(crate) type CheckResult<T = ()> = Result<T, NotPassed>;

/// Why a check did not pass.
#[derive(Clone, Debug)]
pub(crate) struct NotPassed {
    /// Otherwise it does not apply: it cannot be told, or need not be true, of this agent.
    pub(crate) is_failure: bool,
    pub(crate) sent: String,
    pub(crate) seen: String,
    /// The task the check depends on: an agent that has purged it is not to blame for what it says of it.
    pub(crate) task: Option<String>,
}

pub(crate) fn fail<T>(sent: impl Into<String>, seen: impl Into<String>) -> CheckResult<T> {
    Err(NotPassed { is_failure: true, sent: sent.into(), seen: seen.into(), task: None })
}

/// The check does not apply.
pub(crate) fn skip<T>(why: impl Into<String>) -> CheckResult<T> {
    Err(NotPassed { is_failure: false, sent: String::new(), seen: why.into(), task: None })
}

pub(crate) fn applies_if(condition: bool, otherwise: &str) -> CheckResult {
    if condition { Ok(()) } else { skip(otherwise) }
}

pub(crate) trait OrSkip<T> {
    /// The value without which the check does not apply.
    fn or_skip(self, why: &str) -> CheckResult<T>;
}

impl<T> OrSkip<T> for Option<T> {
    fn or_skip(self, why: &str) -> CheckResult<T> {
        self.map_or_else(|| skip(why), Ok)
    }
}

pub(crate) trait Verdict {
    /// The same, if the agent still has this task.
    fn about_task(self, id: &str) -> Self;

    fn is_failure(&self) -> bool;
}

impl<T> Verdict for CheckResult<T> {
    fn about_task(self, id: &str) -> Self {
        self.map_err(|problem| NotPassed { task: Some(id.to_owned()), ..problem })
    }

    fn is_failure(&self) -> bool {
        self.as_ref().is_err_and(|problem| problem.is_failure)
    }
}

/// Passes if there are no problems.
pub(crate) fn no_problems(problems: impl IntoIterator<Item = String>, sent: impl Into<String>) -> CheckResult {
    let mut problems = problems.into_iter();
    let mut seen = problems.by_ref().take(MAX_REPORTED).collect::<Vec<_>>().join("; ");
    if seen.is_empty() {
        return Ok(());
    }
    match problems.count() {
        0 => {}
        more => seen.push_str(&format!("; and {more} more like these")),
    }
    fail(sent, seen)
}
