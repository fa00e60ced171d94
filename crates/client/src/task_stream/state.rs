//! The state machine of a task stream, without I/O: it takes what has come (an item of a connection, the answer to a
//! call) and says what to do next. The stream around it makes the calls and reads the connections.
//!
//! What it keeps is in four parts: where it is ([`State`], [`Stage`]), what the reader was told ([`Emitted`]), how far
//! the agent's events were followed ([`Cursor`]), and what has gone wrong since ([`Failures`]).

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use switchboard_a2a::{ArtifactId, SendRequest, SendResponse, StreamResponse, Task, TaskId};
use switchboard_egress::SendError;

use super::deduplicate::Deduplicator;
use super::position::Position;
use super::reorder::{NumberedEvent, ReorderBuffer};
use super::seen_messages::SeenMessages;
use super::size_limit::TaskSize;
use super::{GapReason, StreamGap, Update};
use crate::event_stream::StreamItem;
use crate::exchange::MAX_DEPTH;
use crate::{ClientError, RetryPolicy, not_a2a};

/// What a stream began with.
pub(crate) enum Origin {
    /// A message, until its task is known, and its idempotency key.
    Sent { request: Option<Box<SendRequest>>, key: String },
    /// An existing task, and what the reader was told of it before.
    Subscribed { task: TaskId, told: Option<Box<Task>> },
}

/// What is known of the agent and how it is called; it does not change while the stream lives.
pub(super) struct Rules {
    /// Its address, redacted.
    pub(super) url: String,
    pub(super) retries: RetryPolicy,
    pub(super) poll: Option<Duration>,
    /// The largest task.
    pub(super) task_limit: usize,
    /// The agent's event ids are sequence numbers without holes, so that a hole is a lost event.
    pub(super) is_numbered: bool,
    /// What its card says of streaming, if there is a card.
    pub(super) streaming: Option<bool>,
    /// See [`crate::CallContext::sends_once`].
    pub(super) sends_once: bool,
}

/// What the stream waits for.
pub(super) enum State {
    /// Nothing: it connects again or polls.
    Disconnected,
    /// The next item of the connection.
    Reading(Reading),
    /// The answer to a call, and beside it there may be a connection to be read on.
    Calling { call: Box<Call>, connection: Option<Reading> },
    /// Nothing more comes.
    Finished,
    /// The final error, returned after all queued updates.
    Failed(ClientError),
}

/// A connection that is being read.
#[derive(Clone, Copy, Default)]
pub(super) struct Reading {
    /// It is a subscription without any event so far.
    pub(super) awaits_first_event: bool,
    /// A look has found what no event has brought since.
    pub(super) is_behind: bool,
}

/// How the stream gets its news.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The first response has not come.
    Opening,
    /// From connections.
    Streaming,
    /// By reading the task, which has found nothing new so many times in a row.
    Polling { idle: u32 },
}

/// A call to make. A wait may be cut short.
pub(super) enum Call {
    /// Sends the message and opens its stream; with a wait, a second time and only where that is safe.
    SendStreaming { again_after: Option<Duration> },
    /// Sends the message without streaming.
    SendBlocking,
    /// Subscribes, from the last event id if there is one.
    Subscribe { task: TaskId, wait: Duration },
    /// Reads the task.
    Fetch { task: TaskId, wait: Duration, why: Box<Why> },
}

/// Why the task is read.
pub(super) enum Why {
    /// A subscription did not begin with it, but with this update.
    Compare { update: StreamResponse, id: Option<String> },
    /// Events before this one were lost.
    CompareAfterGap(NumberedEvent),
    /// This event would end the stream.
    Confirm { terminal: StreamResponse, attempt: u32 },
    /// A connection broke without any event.
    Broken { problem: String },
    /// It cannot be subscribed to, for this reason.
    Instead { reason: Option<ClientError> },
    /// It is polled.
    Poll,
    /// Something else says that there is news.
    Look,
}

/// The answer to a call.
pub(super) enum Answer {
    /// A connection was opened, or was not.
    Opened(Result<(), ClientError>),
    /// The message cannot be sent a second time.
    NotRepeated(ClientError),
    Responded(Result<SendResponse, ClientError>),
    Fetched(Result<Task, ClientError>),
}

/// What the reader was told.
#[derive(Default)]
pub(super) struct Emitted {
    /// The fold of the events.
    pub(super) task: Option<Task>,
    /// The last thing told of the artifacts was a snapshot of the task.
    pub(super) is_snapshot: bool,
    /// The messages, also those that no snapshot holds any more.
    pub(super) messages: SeenMessages,
    /// The artifacts whose last chunk was told.
    pub(super) finished: HashSet<ArtifactId>,
    pub(super) reply: Option<SendResponse>,
    pub(super) size: TaskSize,
}

/// How far the agent's events were followed.
#[derive(Default)]
pub(super) struct Cursor {
    /// The last event id, and the same parsed.
    pub(super) last_id: Option<String>,
    pub(super) position: Option<Position>,
    /// Events that arrived out of order.
    pub(super) reorder: ReorderBuffer,
    /// Events may have been missed, so the terminal event is confirmed with the stored task.
    pub(super) needs_confirmation: bool,
    /// Recognizes events of the connection that a snapshot already contained.
    pub(super) overlap: Option<Deduplicator>,
}

/// What has gone wrong since there was news.
#[derive(Default)]
pub(super) struct Failures {
    pub(super) attempt: u32,
    pub(super) retry_after: Option<Duration>,
    /// The agent's error on a stream.
    pub(super) agent_error: Option<ClientError>,
}

pub(super) struct Machine {
    pub(super) rules: Rules,
    pub(super) origin: Origin,
    pub(super) state: State,
    pub(super) stage: Stage,
    pub(super) emitted: Emitted,
    pub(super) cursor: Cursor,
    pub(super) failures: Failures,
    /// The agent's own error has ended the stream.
    pub(super) is_given_up: bool,
    pub(super) ready: VecDeque<Update>,
}

impl Machine {
    pub(super) fn new(rules: Rules, mut origin: Origin) -> Self {
        let mut emitted = Emitted::default();
        let call = match &mut origin {
            // Without a card streaming is tried.
            Origin::Sent { .. } if rules.streaming == Some(false) => Call::SendBlocking,
            Origin::Sent { .. } => Call::SendStreaming { again_after: None },
            Origin::Subscribed { task, told } => {
                if let Some(told) = told.take() {
                    emitted.messages.add_all(&told);
                    emitted.task = Some(*told);
                }
                Call::Subscribe { task: task.clone(), wait: Duration::ZERO }
            }
        };
        Self {
            rules,
            origin,
            state: State::Calling { call: Box::new(call), connection: None },
            stage: Stage::Opening,
            emitted,
            cursor: Cursor::default(),
            failures: Failures::default(),
            is_given_up: false,
            ready: VecDeque::new(),
        }
    }

    /// The id of the task, as soon as it is known.
    pub(super) fn task_id(&self) -> Option<TaskId> {
        match (&self.emitted.task, &self.origin) {
            (Some(task), _) => Some(task.id.clone()),
            (None, Origin::Subscribed { task, .. }) => Some(task.clone()),
            (None, Origin::Sent { .. }) => None,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.stage != Stage::Opening
    }

    pub(super) fn is_polling(&self) -> bool {
        matches!(self.stage, Stage::Polling { .. })
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Finished | State::Failed(_))
    }

    /// Whether the connection is needed any longer.
    pub(super) fn is_connected(&self) -> bool {
        matches!(self.state, State::Reading(_) | State::Calling { connection: Some(_), .. })
    }

    pub(super) fn finish(&mut self) {
        if !self.is_over() {
            self.state = State::Finished;
        }
    }

    pub(super) fn fail(&mut self, error: ClientError) {
        if !self.is_over() {
            self.state = State::Failed(error);
        }
    }

    /// The agent has said why it does not go on.
    pub(super) fn give_up(&mut self, error: ClientError) {
        self.is_given_up = true;
        self.fail(error);
    }

    pub(super) fn opened(&mut self) {
        if self.stage == Stage::Opening {
            self.stage = Stage::Streaming;
        }
    }

    /// Makes a call; a connection stays beside it.
    pub(super) fn call(&mut self, call: Call) {
        let connection = match &self.state {
            State::Finished | State::Failed(_) => return,
            State::Reading(reading) => Some(*reading),
            State::Calling { connection, .. } => *connection,
            State::Disconnected => None,
        };
        self.state = State::Calling { call: Box::new(call), connection };
    }

    pub(super) fn fetch(&mut self, task: TaskId, wait: Duration, why: Why) {
        self.call(Call::Fetch { task, wait, why: Box::new(why) });
    }

    pub(super) fn disconnect(&mut self) {
        match &mut self.state {
            State::Finished | State::Failed(_) => {}
            State::Calling { connection, .. } => *connection = None,
            State::Disconnected | State::Reading(_) => self.state = State::Disconnected,
        }
    }

    /// The connection that is being read.
    pub(super) fn reading(&mut self) -> Option<&mut Reading> {
        match &mut self.state {
            State::Reading(reading) | State::Calling { connection: Some(reading), .. } => Some(reading),
            _ => None,
        }
    }

    pub(super) fn awaits_first_event(&mut self) -> bool {
        self.reading().is_some_and(|reading| reading.awaits_first_event)
    }

    /// Takes the answer to the call that is being made.
    pub(super) fn on_answer(&mut self, answer: Answer) -> Result<(), ClientError> {
        let (call, connection) = match std::mem::replace(&mut self.state, State::Disconnected) {
            State::Calling { call, connection } => (call, connection),
            other => {
                self.state = other;
                return Ok(());
            }
        };
        if let Some(reading) = connection {
            self.state = State::Reading(reading);
        }
        match (*call, answer) {
            (Call::SendStreaming { .. }, Answer::Opened(opened)) => self.on_send_opened(opened),
            (Call::SendBlocking, Answer::Responded(response)) => response.map(|response| self.emit_response(response)),
            (Call::Subscribe { .. }, Answer::Opened(opened)) => self.on_subscribed(opened),
            (Call::Fetch { task, why, .. }, Answer::Fetched(now)) => self.on_fetched(task, *why, now),
            (_, Answer::NotRepeated(error)) => Err(error),
            // The stream answers each call in its kind.
            _ => Err(self.broken()),
        }
    }

    fn on_fetched(&mut self, task: TaskId, why: Why, now: Result<Task, ClientError>) -> Result<(), ClientError> {
        match why {
            Why::Compare { update, id } => self.on_compared(update, id, now),
            Why::CompareAfterGap(event) => self.on_gap_compared(event, task, now),
            Why::Confirm { terminal, attempt } => self.on_confirmed(terminal, attempt, now),
            Why::Broken { problem } => self.on_broken_confirmed(problem, now),
            Why::Instead { reason } => self.on_fetched_instead(now, reason),
            Why::Poll => self.on_polled(now),
            Why::Look => {
                self.on_looked(now);
                Ok(())
            }
        }
    }

    /// Takes an item of the connection.
    pub(super) fn on_item(&mut self, item: StreamItem) -> Result<(), ClientError> {
        match item {
            StreamItem::Event { frame, meta } => self.on_event(*frame, meta),
            StreamItem::KeepAlive(meta) => {
                self.on_keep_alive(meta);
                Ok(())
            }
            StreamItem::Error(error) => self.refused(ClientError::Agent(error)),
            // No event follows a terminal one, so missing events would have come by now.
            StreamItem::End if self.cursor.reorder.any(|event| self.ends(event)) => {
                self.on_gap_timeout();
                Ok(())
            }
            StreamItem::End => self.ended(),
            StreamItem::Broken(why) => self.on_broken(why),
            // A retry would bring the same event.
            StreamItem::TooLarge { limit } => Err(ClientError::TooLarge { origin: self.rules.url.clone(), limit }),
            // The same; but a task that is known may be readable.
            StreamItem::TooDeep if self.task_id().is_none() => Err(not_a2a::too_deep_event(&self.rules.url, MAX_DEPTH)),
            StreamItem::TooDeep => {
                self.on_broken(format!("an event cannot be read: {}", not_a2a::nested_deeper_than(MAX_DEPTH)))
            }
        }
    }

    /// What comes after a step that has left nothing to wait for.
    pub(super) fn go_on(&mut self) {
        match self.is_polling() {
            true => self.poll(),
            false => self.reconnect(),
        }
    }

    pub(super) fn broken(&self) -> ClientError {
        ClientError::Lost { origin: self.rules.url.clone(), error: SendError::Broken }
    }

    pub(super) fn emit_gap(&mut self, task: TaskId, missing: GapReason) {
        self.ready.push_back(Update::Gap(StreamGap { task, missing }));
    }
}
