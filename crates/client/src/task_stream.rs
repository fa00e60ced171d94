//! The event stream of one task, over as many connections as it takes. The reader gets every event once and in order,
//! and a gap where that was not possible.
//!
//! Agents differ in what they offer after a lost connection: resumption (`Last-Event-ID`); a subscription that begins
//! with the task, from which the missed events are derived (catch-up); or only polling. A stream that just ends is
//! never taken for success.

mod catch_up;
mod deduplicate;
mod emit;
mod events;
mod look;
mod position;
mod reconcile;
mod reconnect;
mod reorder;
mod requests;
mod seen_messages;
mod size_limit;
mod state;
mod update;

use std::pin::pin;
use std::time::Duration;

use switchboard_a2a::extension::RESUMPTION;
use switchboard_a2a::{SendResponse, Task, TaskId};
use tokio::time::Instant;

use crate::client::Client;
use crate::event_stream::EventStream;
use crate::{CallContext, ClientError};
pub use catch_up::remaining_parts;
use requests::PendingCall;
pub(crate) use state::Origin;
use state::{Machine, Rules, State};
pub use update::{GapReason, StreamGap, Update};

/// How long an out-of-order event waits for the missing ones.
const REORDER_WINDOW: Duration = Duration::from_millis(50);

/// The event stream of a task, which reconnects until the task ends.
pub struct TaskStream {
    client: Client,
    context: CallContext,
    /// Decides what is done next.
    machine: Machine,
    connection: Option<EventStream>,
    /// The call the machine waits for. Kept here, so that `next` is cancel safe.
    pending: Option<PendingCall>,
    /// When the events missing before buffered ones count as lost.
    gap_deadline: Option<Instant>,
    /// The reader has asked for a look that was not begun yet.
    is_to_look: bool,
    deadline: Deadline,
}

/// The total timeout: when it ends, and its length.
type Deadline = Option<(Instant, Duration)>;

impl TaskStream {
    /// Waits for the first response, within the total timeout.
    pub(crate) async fn open(client: Client, context: CallContext, origin: Origin) -> Result<Self, ClientError> {
        let limit = client.peer().limits.total;
        let deadline = limit.and_then(|total| Some((Instant::now().checked_add(total)?, total)));
        let url = client.redacted_url();
        let task = match &origin {
            Origin::Sent { .. } => None,
            Origin::Subscribed { task, .. } => Some(task.clone()),
        };
        let late = |after| ClientError::Timeout { origin: url, after, task };
        within(deadline, Self::start(client, context, origin, deadline)).await.map_err(late)?
    }

    async fn start(
        client: Client,
        context: CallContext,
        origin: Origin,
        deadline: Deadline,
    ) -> Result<Self, ClientError> {
        let found = client.card(&context).await.ok();
        let capabilities = found.as_ref().map(|found| &found.card.capabilities);
        let is_numbered =
            capabilities.is_some_and(|these| these.extensions.iter().any(|extension| extension.uri == RESUMPTION));
        let peer = client.peer();
        let rules = Rules {
            url: client.redacted_url(),
            retries: peer.retries.clone(),
            poll: peer.limits.poll,
            task_limit: peer.limits.task,
            is_numbered,
            streaming: capabilities.and_then(|these| these.streaming),
            sends_once: context.sends_once,
        };
        let mut stream = Self {
            client,
            context,
            machine: Machine::new(rules, origin),
            connection: None,
            pending: None,
            gap_deadline: None,
            is_to_look: false,
            deadline,
        };
        while !stream.machine.is_open() {
            stream.advance().await?;
        }
        Ok(stream)
    }

    /// The task as far as it was emitted.
    pub fn task(&self) -> Option<&Task> {
        self.machine.emitted.task.as_ref()
    }

    /// The response so far: the task as emitted, or a direct reply.
    pub fn response(&self) -> Option<SendResponse> {
        let emitted = &self.machine.emitted;
        emitted.reply.clone().or_else(|| emitted.task.clone().map(SendResponse::Task))
    }

    /// The next update; none after a direct reply, or once the task is terminal or interrupted. An interrupted state
    /// from before the sent message does not count: the message may be the answer.
    ///
    /// Cancel safe, as in a `select!`: the next call continues where this one was, and no timeout starts again.
    ///
    /// # Errors
    /// When reconnecting has failed for good. [`Self::task`] then holds what was emitted.
    pub async fn next(&mut self) -> Result<Option<Update>, ClientError> {
        loop {
            if let Some(update) = self.machine.ready.pop_front() {
                return Ok(Some(update));
            }
            match &self.machine.state {
                State::Failed(failure) => return Err(failure.clone()),
                State::Finished => return Ok(None),
                _ => {}
            }
            let deadline = self.deadline;
            let advanced = {
                // A future that is passed by value takes its space twice, and that for as long as the task is followed.
                let advancing = pin!(self.advance());
                within(deadline, advancing).await
            };
            let advanced = advanced.unwrap_or_else(|after| {
                let (origin, task) = (self.client.redacted_url(), self.task_id());
                Err(ClientError::Timeout { origin, after, task })
            });
            if let Err(error) = advanced {
                self.machine.fail(error);
            }
        }
    }

    /// There may be news: the task is looked at now, in place of a wait for the next attempt or poll, or beside a
    /// connection. What the look finds comes from [`Self::next`], and never twice.
    pub fn look(&mut self) {
        self.is_to_look = true;
    }

    /// Reads to the end and returns the response. A gap is an error here.
    ///
    /// # Errors
    /// See [`Self::next`]; also [`ClientError::Gap`].
    pub async fn finish(mut self) -> Result<SendResponse, ClientError> {
        while let Some(update) = self.next().await? {
            if let Update::Gap(gap) = update {
                return Err(ClientError::Gap(gap));
            }
        }
        self.response().ok_or_else(|| ClientError::NotA2a {
            origin: self.client.redacted_url(),
            status: 200,
            what: "a stream without anything on it".to_owned(),
            hint: String::new(),
        })
    }

    /// The id of the task, as soon as it is known, also after an error.
    pub fn task_id(&self) -> Option<TaskId> {
        self.machine.task_id()
    }

    /// Whether the agent has given the task up: it sent an error on the stream, and nothing after it.
    pub fn is_given_up(&self) -> bool {
        self.machine.is_given_up
    }

    /// One step. Everything awaited here is kept in `self`, so that a step can be cancelled and repeated.
    async fn advance(&mut self) -> Result<(), ClientError> {
        let result = match &self.machine.state {
            State::Finished | State::Failed(_) => Ok(()),
            State::Disconnected => {
                self.machine.go_on();
                Ok(())
            }
            State::Calling { .. } => self.advance_call().await,
            State::Reading(_) if std::mem::take(&mut self.is_to_look) => {
                self.machine.look();
                Ok(())
            }
            State::Reading(_) => self.read().await,
        };
        if !self.machine.is_connected()
            && let Some(connection) = self.connection.take()
            && matches!(self.machine.state, State::Finished)
        {
            connection.release();
        }
        result
    }

    async fn advance_call(&mut self) -> Result<(), ClientError> {
        let State::Calling { call, .. } = &self.machine.state else { return Ok(()) };
        match &mut self.pending {
            None => self.pending = Some(self.begin(call)),
            Some(PendingCall::Waiting(at)) => {
                if !std::mem::take(&mut self.is_to_look) {
                    tokio::time::sleep_until(*at).await;
                }
                self.pending = Some(PendingCall::Running(self.run(call)));
            }
            Some(PendingCall::Running(running)) => {
                let (answer, connection) = running.as_mut().await;
                self.pending = None;
                if connection.is_some() {
                    self.connection = connection;
                }
                return self.machine.on_answer(answer);
            }
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<(), ClientError> {
        let Some(connection) = &mut self.connection else {
            self.machine.disconnect();
            return Ok(());
        };
        let item = match self.gap_deadline {
            None => connection.next().await,
            Some(at) => match tokio::time::timeout_at(at, connection.next()).await {
                Ok(item) => item,
                Err(_) => {
                    self.gap_deadline = None;
                    self.machine.on_gap_timeout();
                    return Ok(());
                }
            },
        };
        let result = self.machine.on_item(item);
        let is_empty = self.machine.cursor.reorder.is_empty();
        self.gap_deadline = if is_empty { None } else { Instant::now().checked_add(REORDER_WINDOW) };
        result
    }
}

/// Waits until the deadline; the error is the length of the timeout.
async fn within<T>(deadline: Deadline, work: impl Future<Output = T>) -> Result<T, Duration> {
    match deadline {
        None => Ok(work.await),
        Some((until, after)) => tokio::time::timeout_at(until, work).await.map_err(|_| after),
    }
}
