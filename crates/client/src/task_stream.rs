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
mod position;
mod reconcile;
mod reconnect;
mod reorder;
mod requests;
mod seen_messages;
mod size_limit;
mod update;

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use switchboard_a2a::extension::RESUMPTION;
use switchboard_a2a::{ArtifactId, SendRequest, SendResponse, Task, TaskId};
use tokio::time::Instant;

use crate::client::Client;
use crate::event_stream::{EventStream, StreamItem};
use crate::{CallContext, ClientError};
use deduplicate::Deduplicator;
use position::Position;
use reorder::ReorderBuffer;
use requests::PendingRequest;
use seen_messages::SeenMessages;
use size_limit::TaskSize;
pub use update::{GapReason, StreamGap, Update};

/// How long an out-of-order event waits for the missing ones.
const REORDER_WINDOW: Duration = Duration::from_millis(50);

/// The event stream of a task, which reconnects until the task ends.
pub struct TaskStream {
    client: Client,
    context: CallContext,
    origin: Origin,
    stream: Option<EventStream>,
    /// The request under way. Kept here, so that `next` is cancel safe.
    pending: Option<PendingRequest>,
    /// The first response has come.
    is_open: bool,
    is_polling: bool,
    /// The connection is a subscription without any event so far.
    awaits_first_event: bool,
    is_finished: bool,
    ready: VecDeque<Update>,
    /// The fold of the emitted events.
    emitted: Option<Task>,
    /// The last thing emitted of the artifacts was a snapshot of the task.
    is_snapshot: bool,
    /// The emitted messages, also those that no snapshot holds any more.
    messages: SeenMessages,
    /// The artifacts whose last chunk was emitted.
    finished: HashSet<ArtifactId>,
    reply: Option<SendResponse>,
    /// The cursor: the last event id, and the same parsed.
    last_id: Option<String>,
    position: Option<Position>,
    /// The agent's event ids are sequence numbers without holes, so that a hole is a lost event.
    is_numbered: bool,
    declares_streaming: bool,
    /// Events that arrived out of order.
    reorder: ReorderBuffer,
    /// When the missing events before those count as lost.
    gap_deadline: Option<Instant>,
    /// Events may have been missed, so the terminal event is confirmed with the stored task.
    needs_confirmation: bool,
    /// Recognizes events of the connection that a snapshot already contained.
    overlap: Option<Deduplicator>,
    attempt: u32,
    /// Polls in a row that found nothing new.
    idle_polls: u32,
    retry_after: Option<Duration>,
    deadline: Deadline,
    size: TaskSize,
    /// The agent's error on a stream, until something new comes after it.
    agent_error: Option<ClientError>,
    /// The final error, returned after all queued updates.
    failure: Option<ClientError>,
}

pub(crate) enum Origin {
    /// With a message and its idempotency key.
    Sent { request: Box<SendRequest>, key: String },
    /// With an existing task.
    Subscribed(TaskId),
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
            Origin::Subscribed(task) => Some(task.clone()),
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
        let streaming = capabilities.and_then(|these| these.streaming);
        let mut followed = Self {
            client,
            context,
            origin,
            stream: None,
            pending: None,
            is_open: false,
            is_polling: false,
            awaits_first_event: false,
            is_finished: false,
            ready: VecDeque::new(),
            emitted: None,
            is_snapshot: false,
            messages: SeenMessages::default(),
            finished: HashSet::new(),
            reply: None,
            last_id: None,
            position: None,
            is_numbered,
            declares_streaming: streaming == Some(true),
            reorder: ReorderBuffer::default(),
            gap_deadline: None,
            needs_confirmation: false,
            overlap: None,
            attempt: 0,
            idle_polls: 0,
            retry_after: None,
            deadline,
            size: TaskSize::default(),
            agent_error: None,
            failure: None,
        };
        match &followed.origin {
            // Without a card streaming is tried.
            Origin::Sent { .. } if streaming == Some(false) => followed.send_blocking(),
            Origin::Sent { .. } => followed.send_streaming(None),
            Origin::Subscribed(task) => followed.subscribe(task.clone(), Duration::ZERO),
        }
        while !followed.is_open {
            followed.advance().await?;
        }
        Ok(followed)
    }

    /// The task as far as it was emitted.
    pub fn task(&self) -> Option<&Task> {
        self.emitted.as_ref()
    }

    /// The response so far: the task as emitted, or a direct reply.
    pub fn response(&self) -> Option<SendResponse> {
        self.reply.clone().or_else(|| self.emitted.clone().map(SendResponse::Task))
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
            if let Some(update) = self.ready.pop_front() {
                return Ok(Some(update));
            }
            if let Some(failure) = &self.failure {
                return Err(failure.clone());
            }
            if self.is_finished {
                return Ok(None);
            }
            let advanced = within(self.deadline, self.advance()).await.unwrap_or_else(|after| {
                let (origin, task) = (self.client.redacted_url(), self.task_id());
                Err(ClientError::Timeout { origin, after, task })
            });
            self.failure = advanced.err().or(self.failure.take());
        }
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
        match (&self.emitted, &self.origin) {
            (Some(task), _) => Some(task.id.clone()),
            (None, Origin::Subscribed(task)) => Some(task.clone()),
            (None, Origin::Sent { .. }) => None,
        }
    }

    /// One step. Everything awaited here is kept in `self`, so that a step can be cancelled and repeated.
    async fn advance(&mut self) -> Result<(), ClientError> {
        if let Some(pending) = &mut self.pending {
            let continuation = pending.as_mut().await;
            self.pending = None;
            return continuation(self);
        }
        if self.is_polling {
            self.poll();
            return Ok(());
        }
        let Some(stream) = &mut self.stream else {
            self.reconnect();
            return Ok(());
        };
        let item = match self.gap_deadline {
            None => stream.next().await,
            Some(at) => match tokio::time::timeout_at(at, stream.next()).await {
                Ok(item) => item,
                Err(_) => {
                    self.gap_deadline = None;
                    self.on_gap_timeout();
                    return Ok(());
                }
            },
        };
        let result = self.on_item(item);
        self.gap_deadline = if self.reorder.is_empty() { None } else { Instant::now().checked_add(REORDER_WINDOW) };
        result
    }

    fn on_item(&mut self, item: StreamItem) -> Result<(), ClientError> {
        match item {
            StreamItem::Event { frame, meta } => self.on_event(*frame, meta),
            StreamItem::KeepAlive(meta) => {
                self.on_keep_alive(meta);
                Ok(())
            }
            StreamItem::Error(error) => self.refused(ClientError::Agent(error)),
            // No event follows a terminal one, so missing events would have come by now.
            StreamItem::End if self.reorder.any(|event| self.ends(event)) => {
                self.on_gap_timeout();
                Ok(())
            }
            StreamItem::End => self.ended(),
            StreamItem::Broken(why) => self.on_broken(why),
            // A retry would bring the same event.
            StreamItem::TooLarge { limit } => Err(ClientError::TooLarge { origin: self.client.redacted_url(), limit }),
        }
    }
}

/// Waits until the deadline; the error is the length of the timeout.
async fn within<T>(deadline: Deadline, work: impl Future<Output = T>) -> Result<T, Duration> {
    match deadline {
        None => Ok(work.await),
        Some((until, after)) => tokio::time::timeout_at(until, work).await.map_err(|_| after),
    }
}
