//! What a turn does first, by what was saved before.

use switchboard_engine::Cause;

use super::saved::{Attached, Saved, Sending};

/// How a turn begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Plan {
    /// Sends the message; as an answer, to a remote task that waits for it.
    Send { answers: Option<Attached> },
    /// Finds out whether the message was sent.
    Find(Sending),
    /// Follows a remote task that has the message.
    Follow(Attached),
}

impl Plan {
    /// The address of the agent that the turn goes on with.
    pub(super) fn url(&self) -> Option<&str> {
        match self {
            Self::Send { answers } => answers.as_ref()?.url.as_deref(),
            Self::Find(sending) => sending.url.as_deref(),
            Self::Follow(attached) => attached.url.as_deref(),
        }
    }
}

pub(super) fn plan(saved: Option<Saved>, turn: u64, cause: &Cause) -> Plan {
    match (saved, cause) {
        (Some(Saved::Sending(sending)), _) if sending.turn == turn => Plan::Find(sending),
        (Some(Saved::Attached(attached)), Cause::Settled { .. } | Cause::Recovered) if attached.turn == turn => {
            Plan::Follow(attached)
        }
        (Some(Saved::Attached(attached)), Cause::Settled { .. }) => Plan::Follow(attached),
        // A task that has ended there waits for nothing.
        (Some(Saved::Attached(attached)), _) if attached.ended => Plan::Send { answers: None },
        // A recovered turn on a newer message had not come to sending it: it is the answer to what the task waited for.
        (Some(Saved::Attached(attached)), Cause::Answer { .. } | Cause::Recovered) => {
            Plan::Send { answers: Some(attached) }
        }
        (Some(Saved::Unsent(Sending { turn: unsent, answers, .. })), _) if unsent == turn => Plan::Send { answers },
        (
            Some(Saved::Sending(Sending { answers, .. }) | Saved::Unsent(Sending { answers, .. })),
            Cause::Answer { .. } | Cause::Recovered,
        ) => Plan::Send { answers },
        _ => Plan::Send { answers: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attached(turn: u64) -> Attached {
        let (task, context) = ("there".into(), "talk".into());
        let (earlier, before) = (Vec::new(), Vec::new());
        Attached { turn, since: 1, task, context, url: None, spent_ms: 0, earlier, before, used: None, ended: false }
    }

    #[test]
    fn what_was_saved_decides_what_a_turn_does_first() {
        let sending = |turn| Sending { turn, ..Sending::default() };
        let answering = Sending { turn: 5, answers: Some(attached(1)), ..Sending::default() };
        let ended = Attached { ended: true, ..attached(1) };
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
            // The turn before has ended, and the server stopped before this one had come to anything.
            (Some(Saved::Attached(ended.clone())), 5, Cause::Recovered, fresh.clone()),
            (Some(Saved::Attached(ended)), 5, Cause::Next, fresh.clone()),
            (Some(Saved::Unsent(sending(1))), 1, Cause::Recovered, fresh.clone()),
            (Some(Saved::Unsent(answering)), 5, Cause::Recovered, Plan::Send { answers: Some(attached(1)) }),
            (Some(Saved::Replied), 5, Cause::Next, fresh),
        ] {
            assert_eq!(plan(saved.clone(), turn, &cause), expected, "{saved:?} {turn} {cause:?}");
        }
    }
}
