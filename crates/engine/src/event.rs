//! The event log: what it holds of a task, one line of JSON each.
//!
//! The two kinds that go out on the wire are lines exactly as v1.0 sends them, so that writing an event is also
//! encoding it: the bytes in the log are the bytes in the stream. A store may leave out what it can put back, as long as
//! it reads the same bytes. The other kinds are the kernel's own; they have numbers too, so the numbers a reader sees on
//! the wire may skip.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use switchboard_a2a::{
    Dialect, Json, Message, Metadata, TaskArtifactUpdate, TaskId, TaskState, TaskStatusUpdate, Timestamp, encode,
};

use crate::ids::{CallerId, Cursor, Epoch, Seq};
use crate::review::Decision;
use crate::trace_context::TraceContext;

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Event {
    /// A message arrived for the task.
    Received(Arc<Received>),
    /// The status changed; sent.
    StatusUpdate(TaskStatusUpdate),
    /// An artifact grew; sent.
    ArtifactUpdate(TaskArtifactUpdate),
    /// The agent answered with a message instead of a task.
    Replied(Message),
    /// A turn began on a waiting message: the number of its `Received`. Earlier versions have said so too of what the running
    /// turn took.
    Taken(u64),
    /// The running turn took a waiting message.
    Joined(u64),
    /// The agent put something by for after a restart.
    Saved(Json),
    /// The agent noted something for later tasks of the conversation.
    Noted(Json),
    /// What the work has cost so far.
    Used(Usage),
    /// What a child that has ended has used, with all that it has called.
    ChildUsed(ChildUsage),
    /// A cancellation was requested.
    CancelRequested,
    /// A question was settled elsewhere; the status that goes on is the next event.
    Settled,
    /// The server stopped in order while the turn was running.
    Interrupted,
    /// A new owner took over a turn that had lost its own.
    Recovered,
}

/// A message and what came with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Received {
    /// It came while its task was not visible, because its agent may answer with a message instead of a task. The first
    /// member, so that its line can be told by how it begins.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// The message, with its task and context filled in.
    pub message: Message,
    /// When it was accepted.
    pub at: Timestamp,
    /// Media types the caller can read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted_output_modes: Vec<String>,
    /// The request's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// The delegation chain of the message, with members that are not known here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<Json>,
    /// Who sent it, where that is not the task's owner: the reviewer of a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<CallerId>,
    /// What it decides, where it is a reviewer's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// What the directory says of how it picked the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<Json>,
    /// When the task has to be done, if before `tasks.deadline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The trace context of the request it came with. Shared, because the turn and what the agent sends get it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Arc<TraceContext>>,
    /// The extensions of its agent that the caller has declared, see [`crate::Turn::extensions`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
}

impl Received {
    /// A message with nothing beside it.
    pub fn new(message: Message, at: Timestamp) -> Self {
        Self {
            hidden: false,
            message,
            at,
            accepted_output_modes: Vec::new(),
            metadata: None,
            chain: None,
            by: None,
            decision: None,
            routing: None,
            deadline: None,
            trace: None,
            extensions: Vec::new(),
        }
    }

    /// Who has answered a question with it; absent if the time has decided it.
    pub fn answered_by(&self, owner: &CallerId) -> Option<CallerId> {
        self.by.clone().or_else(|| self.decision.is_none().then(|| owner.clone()))
    }
}

/// The cost of the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Money, in US dollars.
    pub cost_usd: f64,
}

impl Usage {
    /// The same with a cost that is an amount of money: what an agent elsewhere reports may be negative or no number, which
    /// JSON cannot say.
    #[must_use]
    pub fn clamped(self) -> Self {
        let cost_usd = if self.cost_usd.is_finite() { self.cost_usd.max(0.0) } else { 0.0 };
        Self { cost_usd, ..self }
    }

    /// The sum of both, at most what can be written.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cost_usd: (self.clamped().cost_usd + other.clamped().cost_usd).min(f64::MAX),
        }
    }
}

/// The usage of a child's tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildUsage {
    /// The child.
    pub child: TaskId,
    /// What it has used, with all that it has called.
    pub tree: Usage,
}

/// What a reader must know of an event without decoding it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The kernel's own; not sent.
    Internal,
    /// An artifact update.
    Artifact,
    /// A status update to this state.
    Status(TaskState),
}

impl EventKind {
    /// Whether it goes out on the wire.
    pub fn is_sent(self) -> bool {
        self != Self::Internal
    }

    /// Whether it is the terminal event: nothing follows it. A direct reply also ends its task, which is never sent.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Status(state) if state.is_terminal())
    }
}

impl Event {
    /// What a reader must know of it.
    pub fn kind(&self) -> EventKind {
        match self {
            Self::StatusUpdate(update) => EventKind::Status(update.status.state),
            Self::ArtifactUpdate(_) => EventKind::Artifact,
            _ => EventKind::Internal,
        }
    }

    /// Reads one line of the log.
    pub fn decode(line: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(line)
    }

    /// Writes one line of the log.
    pub fn encode_into(&self, buffer: &mut Vec<u8>) {
        // Our own types hold nothing JSON cannot say; a failure would leave the line short and be seen on reading.
        if let Err(error) = serde_json::to_writer(&mut *buffer, self) {
            tracing::error!(%error, "an event could not be encoded");
        }
    }
}

/// A committed event as readers get it, shared by all of them.
#[derive(Debug)]
pub struct LoggedEvent {
    /// Its number.
    pub seq: Seq,
    /// The epoch it was written in.
    pub epoch: Epoch,
    /// What it is.
    pub kind: EventKind,
    /// Its line in the log; for events that are sent, the v1.0 frame.
    pub line: Bytes,
    /// The frame in the other dialects, once a reader has asked for it.
    translated: [OnceLock<Bytes>; Dialect::ALL.len()],
}

impl LoggedEvent {
    /// An event with its number in the log.
    pub(crate) fn new(seq: Seq, epoch: Epoch, kind: EventKind, line: Bytes) -> Arc<Self> {
        Arc::new(Self { seq, epoch, kind, line, translated: Default::default() })
    }

    /// The frame in a dialect, encoded once for all readers. Whether v0.3 calls it final is the same for all of them:
    /// it follows from the event and the agent's switch.
    pub fn frame(&self, dialect: Dialect, is_final: bool) -> Result<Bytes, serde_json::Error> {
        if dialect == Dialect::V1 {
            return Ok(self.line.clone());
        }
        let slot = &self.translated[dialect.index()];
        if let Some(frame) = slot.get() {
            return Ok(frame.clone());
        }
        let frame = Bytes::from(encode::from_v1(dialect, &self.line, is_final)?);
        Ok(slot.get_or_init(|| frame).clone())
    }

    /// Where a reader that has seen it stands.
    pub fn cursor(&self) -> Cursor {
        Cursor { epoch: self.epoch, seq: self.seq }
    }
}

/// Whether a line of the log is a message that came while its task was not visible.
pub(crate) fn is_hidden_message(line: &[u8]) -> bool {
    line.starts_with(br#"{"received":{"hidden":true"#)
}

/// Whether a line of the log goes out on the wire.
pub(crate) fn is_sent(line: &[u8]) -> bool {
    is_artifact(line) || line.starts_with(br#"{"statusUpdate""#)
}

/// Whether a line of the log is an artifact update.
pub(crate) fn is_artifact(line: &[u8]) -> bool {
    line.starts_with(br#"{"artifactUpdate""#)
}

/// Tells the kind of a line as it stands in the log.
pub fn kind_of(line: &[u8]) -> EventKind {
    #[derive(Deserialize)]
    struct Frame {
        #[serde(rename = "statusUpdate")]
        update: Update,
    }
    #[derive(Deserialize)]
    struct Update {
        status: Status,
    }
    #[derive(Deserialize)]
    struct Status {
        state: TaskState,
    }
    if is_artifact(line) {
        return EventKind::Artifact;
    }
    if !line.starts_with(br#"{"statusUpdate""#) {
        return EventKind::Internal;
    }
    match serde_json::from_slice::<Frame>(line) {
        Ok(frame) => EventKind::Status(frame.update.status.state),
        Err(_) => EventKind::Internal,
    }
}
