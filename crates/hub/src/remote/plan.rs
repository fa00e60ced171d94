//! What a turn does first, by what was saved before.

use switchboard_engine::Cause;

use super::saved::{Attached, Saved, Sending};

/// How a turn begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Sends the message; as an answer, to a remote task that waits for it.
    Send { answers: Option<Attached> },
    /// Finds out whether the message was sent.
    Find(Sending),
    /// Follows a remote task that has the message.
    Follow(Attached),
}

pub(super) fn plan(saved: Option<Saved>, turn: u64, cause: &Cause) -> Plan {
    match (saved, cause) {
        (Some(Saved::Sending(sending)), _) if sending.turn == turn => Plan::Find(sending),
        (Some(Saved::Attached(attached)), Cause::Settled { .. } | Cause::Recovered) if attached.turn == turn => {
            Plan::Follow(attached)
        }
        (Some(Saved::Attached(attached)), Cause::Settled { .. }) => Plan::Follow(attached),
        // A recovered turn on a newer message had not come to sending it: it is the answer to what the task waited for.
        (Some(Saved::Attached(attached)), Cause::Answer { .. } | Cause::Recovered) => {
            Plan::Send { answers: Some(attached) }
        }
        (Some(Saved::Sending(Sending { answers, .. })), Cause::Answer { .. } | Cause::Recovered) => {
            Plan::Send { answers }
        }
        _ => Plan::Send { answers: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attached(turn: u64) -> Attached {
        let (task, context) = ("there".into(), "talk".into());
        Attached { turn, since: 1, task, context, spent_ms: 0, earlier: Vec::new() }
    }

    #[test]
    fn what_was_saved_decides_what_a_turn_does_first() {
        let sending = |turn| Sending { turn, keyed: false, answers: None, earlier: Vec::new() };
        let answer = || Cause::Answer { question: None };
        let settled = || Cause::Settled { question: None };
        let fresh = Plan::Send { answers: None };
        for (saved, turn, cause, expected) in [
            (None, 1, Cause::Begin, fresh.clone()),
            (None, 1, Cause::Recovered, fresh.clone()),
            (Some(Saved::Sending(sending(1))), 1, Cause::Recovered, Plan::Find(sending(1))),
            (Some(Saved::Attached(attached(1))), 1, Cause::Recovered, Plan::Follow(attached(1))),
            (Some(Saved::Attached(attached(1))), 1, settled(), Plan::Follow(attached(1))),
            (Some(Saved::Attached(attached(1))), 5, answer(), Plan::Send { answers: Some(attached(1)) }),
            (Some(Saved::Attached(attached(1))), 5, Cause::Recovered, Plan::Send { answers: Some(attached(1)) }),
            (Some(Saved::Attached(attached(1))), 5, Cause::Next, fresh.clone()),
            (Some(Saved::Replied), 5, Cause::Next, fresh),
        ] {
            assert_eq!(plan(saved.clone(), turn, &cause), expected, "{saved:?} {turn} {cause:?}");
        }
    }
}
