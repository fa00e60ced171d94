//! The kernel's own names and numbers as types, so that a fence is never compared with a sequence number.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The store's integer name of a task; never leaves the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey(pub i64);

/// The number of an event within its task: 1, 2, 3 … without gaps. Zero stands before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Seq(pub u64);

impl Seq {
    /// The number `count` events later.
    #[must_use]
    pub fn plus(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Rises each time a turn is claimed; a writer with an older one is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fence(pub u64);

impl Fence {
    /// The fence of the next owner.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Rises at each unclean start, because numbers written before a power cut may be written again after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(pub u64);

/// A position in one task's log that survives a restart: the wire form is `epoch.seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The epoch the event was written in.
    pub epoch: Epoch,
    /// The event.
    pub seq: Seq,
}

impl Cursor {
    /// Reads `epoch.seq`.
    pub fn parse(text: &str) -> Option<Self> {
        let (epoch, seq) = text.trim().split_once('.')?;
        Some(Self { epoch: Epoch(epoch.parse().ok()?), seq: Seq(seq.parse().ok()?) })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.epoch.0, self.seq.0)
    }
}

switchboard_a2a::shared_text!(
    /// Who owns a task: the caller that sent its first message.
    CallerId
);

impl Serialize for CallerId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for CallerId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

switchboard_a2a::shared_text!(
    /// An agent's name, as in its address.
    AgentName
);

impl AgentName {
    /// Agents of the server's own. They have no address and no card, their tasks are visible to their owners at the root,
    /// and a caller cannot name one: no configured name begins with `~`.
    pub const OWN: [&'static str; 3] = ["~ask", "~channel", "~fanout"];

    /// Whether the agent is the server's own.
    pub fn is_own(&self) -> bool {
        self.as_str().starts_with('~')
    }
}
