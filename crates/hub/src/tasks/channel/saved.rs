//! What a channel's turn remembers over a restart. Each message is in exactly one of these places: still unread, the one that
//! the turn begins with, or in something that was saved here.

use serde::{Deserialize, Serialize};
use switchboard_a2a::Message;
use switchboard_engine::Seq;

/// What is saved.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Saved {
    /// Calls that were begun, or are about to be: the number of the last one is its key.
    pub(super) calls: u64,
    /// What the last call gets, until its task has ended. Repeated under its key, it has to be the same.
    pub(super) call: Option<Message>,
    /// An answer for that task.
    pub(super) answer: Option<Answer>,
    /// All messages up to this number are in a call or an answer, or were drained.
    pub(super) through: u64,
}

/// What the agent is answered, under the number of its last message as its key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) key: u64,
    pub(super) message: Message,
}

impl Saved {
    /// Whether a message is in what was saved.
    pub(super) fn has(&self, seq: Seq) -> bool {
        seq.0 <= self.through
    }
}
