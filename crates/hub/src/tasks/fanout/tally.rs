//! What a policy says of how the children stand: go on, begin the next one, or end.

use switchboard_a2a::TaskState;

use crate::tasks::fanout_plan::FanoutPolicy;

/// What a fan-out does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Children that may still decide it have not ended.
    Wait,
    /// The next child is to be begun.
    Next,
    /// Enough have completed; what has not ended is canceled.
    Completed,
    /// Enough cannot complete any more; what has not ended is canceled.
    Failed,
}

/// Decides by the states of the children that were begun, out of so many targets. An unfinished one has no state.
pub(crate) fn decide(policy: FanoutPolicy, ended: &[Option<TaskState>], targets: usize) -> Verdict {
    let completed = ended.iter().filter(|state| **state == Some(TaskState::Completed)).count();
    let open = ended.iter().filter(|state| state.is_none()).count();
    let needed = policy.needed(targets);
    match policy {
        FanoutPolicy::All if open > 0 => Verdict::Wait,
        _ if completed >= needed => Verdict::Completed,
        FanoutPolicy::Failover if open == 0 && ended.len() < targets => Verdict::Next,
        _ if completed + open < needed => Verdict::Failed,
        _ => Verdict::Wait,
    }
}
