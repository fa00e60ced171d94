//! Which state may follow which. Every status that is written passes here, that of a turn and that of any other writer.

use switchboard_a2a::TaskState;

use crate::event::{Event, EventKind};

/// Whether a task in one state may enter another. WORKING may follow itself (progress), and so may a question another
/// question; nothing follows a terminal state, and no task is SUBMITTED twice.
pub(crate) fn is_legal(from: TaskState, to: TaskState) -> bool {
    !from.is_terminal() && !matches!(to, TaskState::Submitted | TaskState::Unspecified)
}

/// Whether a task in a state may take these events, in their order.
pub(crate) fn are_legal(mut state: TaskState, events: &[Event]) -> bool {
    events.iter().all(|event| {
        let EventKind::Status(next) = event.kind() else { return true };
        is_legal(std::mem::replace(&mut state, next), next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_follows_a_terminal_state_and_all_else_may_follow_but_submitted() {
        use TaskState::*;
        let all = [Unspecified, Submitted, Working, InputRequired, AuthRequired, Completed, Failed, Canceled, Rejected];
        // One row for each state that is left, one letter for each that is entered, in the order above.
        let legal = [
            "..yyyyyyy",
            "..yyyyyyy",
            "..yyyyyyy",
            "..yyyyyyy",
            "..yyyyyyy",
            ".........",
            ".........",
            ".........",
            ".........",
        ];
        for (from, row) in all.into_iter().zip(legal) {
            for (to, letter) in all.into_iter().zip(row.chars()) {
                assert_eq!(is_legal(from, to), letter == 'y', "{from:?} to {to:?}");
            }
        }
    }
}
