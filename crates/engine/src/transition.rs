//! Which status may follow which. Every status that a turn writes passes here; cancellation, recovery and the sweep only
//! end tasks that are not terminal yet.

use switchboard_a2a::TaskState;

/// Whether a task in state `from` may enter state `to`.
///
/// WORKING may follow itself (progress), and so may a question another question. Nothing follows an ending, nothing
/// leads back to SUBMITTED, and nothing leads to UNSPECIFIED.
pub fn is_legal(from: TaskState, to: TaskState) -> bool {
    match to {
        TaskState::Unspecified | TaskState::Submitted => false,
        _ => !from.is_terminal(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TaskState::*;

    const ALL: [TaskState; 9] =
        [Unspecified, Submitted, Working, Completed, Failed, Canceled, InputRequired, Rejected, AuthRequired];

    #[test]
    fn nothing_follows_an_ending_and_nothing_returns_to_the_beginning() {
        for from in ALL {
            for to in ALL {
                let expected = !matches!(from, Completed | Failed | Canceled | Rejected)
                    && matches!(to, Working | Completed | Failed | Canceled | InputRequired | Rejected | AuthRequired);
                assert_eq!(is_legal(from, to), expected, "{from:?} to {to:?}");
            }
        }
    }
}
