//! A task followed to its end over as many connections as it takes. Whoever reads it sees every event once and in order,
//! and is told where that was not possible.
//!
//! Agents differ in what they offer after a connection is lost. The best take up the stream exactly where it was left
//! (`Last-Event-ID`); others give a picture of the task, from which what was missed is told; the rest can only be asked
//! again and again how the task is. A stream that just ends is never taken for success.

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
use crate::{ClientError, Context};
use deduplicate::Deduplicator;
use position::Position;
use reorder::ReorderBuffer;
use requests::PendingRequest;
use seen_messages::SeenMessages;
use size_limit::TaskSize;
pub use update::{Gap, Missing, Update};

/// What was overtaken on the way is not further behind than this.
const REORDER_WINDOW: Duration = Duration::from_millis(50);

/// A task that is followed.
pub struct Followed {
    client: Client,
    context: Context,
    origin: Origin,
    stream: Option<EventStream>,
    /// A question under way. It is kept here, so that it goes on where it was if nobody waits for it in between.
    pending: Option<PendingRequest>,
    /// The first answer has come.
    is_open: bool,
    is_polling: bool,
    /// Nothing has come yet on the connection, which is a subscription.
    awaits_first_event: bool,
    is_finished: bool,
    ready: VecDeque<Update>,
    /// What was told, as one task.
    emitted: Option<Task>,
    /// What was told is a picture of the task and nothing else.
    is_snapshot: bool,
    /// The messages that were told, also those that no picture shows any more.
    messages: SeenMessages,
    /// The artifacts whose last chunk was told.
    finished: HashSet<ArtifactId>,
    reply: Option<SendResponse>,
    /// Where to go on, in the agent's words and in numbers.
    last_id: Option<String>,
    position: Option<Position>,
    /// The agent's numbers have no holes, so that a hole is something lost.
    is_numbered: bool,
    /// The card says that there are streams.
    declares_streaming: bool,
    /// What has come before its turn.
    reorder: ReorderBuffer,
    /// When what was overtaken counts as lost.
    gap_deadline: Option<Instant>,
    /// Something may have been missed, so that the end counts only if the agent confirms it.
    needs_confirmation: bool,
    /// What the connection may tell though a picture has shown it.
    overlap: Option<Deduplicator>,
    attempt: u32,
    /// How often in a row there was nothing new to see.
    idle_polls: u32,
    retry_after: Option<Duration>,
    deadline: Option<(Instant, Duration)>,
    /// How large what was told has become.
    size: TaskSize,
    /// The agent's own error on a stream, as long as nothing new has come after it.
    agent_error: Option<ClientError>,
    /// Why it cannot be followed any longer, once everything before it was told.
    failure: Option<ClientError>,
}

/// How it began.
enum Origin {
    /// With a message, under a key that makes it have an effect once.
    Sent { request: Box<SendRequest>, key: String },
    /// With a task that was there.
    Subscribed(TaskId),
}

impl Followed {
    pub(crate) async fn sent(client: Client, context: Context, mut request: SendRequest) -> Result<Self, ClientError> {
        let key = context.key();
        context.mark(&mut request);
        Self::open(client, context, Origin::Sent { request: Box::new(request), key }).await
    }

    pub(crate) async fn subscribed(client: Client, context: Context, task: TaskId) -> Result<Self, ClientError> {
        Self::open(client, context, Origin::Subscribed(task)).await
    }

    /// Waits for the first answer, within the time that there is for all of it.
    async fn open(client: Client, context: Context, origin: Origin) -> Result<Self, ClientError> {
        let limit = client.peer().limits.total;
        let deadline = limit.and_then(|total| Some((Instant::now().checked_add(total)?, total)));
        let shown = client.shown();
        let task = match &origin {
            Origin::Sent { .. } => None,
            Origin::Subscribed(task) => Some(task.clone()),
        };
        let opening = Self::start(client, context, origin, deadline);
        match deadline {
            None => opening.await,
            Some((until, after)) => match tokio::time::timeout_at(until, opening).await {
                Ok(opened) => opened,
                Err(_) => Err(ClientError::Timeout { origin: shown, after, task }),
            },
        }
    }

    async fn start(
        client: Client,
        context: Context,
        origin: Origin,
        deadline: Option<(Instant, Duration)>,
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
            // Whoever has no card is asked.
            Origin::Sent { .. } if streaming == Some(false) => followed.send_blocking(),
            Origin::Sent { .. } => followed.begin(),
            Origin::Subscribed(task) => followed.resume(task.clone(), Duration::ZERO),
        }
        while !followed.is_open {
            followed.advance().await?;
        }
        Ok(followed)
    }

    /// The task as far as it was told.
    pub fn task(&self) -> Option<&Task> {
        self.emitted.as_ref()
    }

    /// What it has come to so far: the task as told, or a direct reply.
    pub fn response(&self) -> Option<SendResponse> {
        self.reply.clone().or_else(|| self.emitted.clone().map(SendResponse::Task))
    }

    /// The next update; none once the task has ended or has begun to wait for somebody, or a direct reply was given. That a
    /// task was waiting before a message was sent does not count: the message may be what it waits for.
    ///
    /// Nothing is lost, told twice or begun anew if this is given up before it is ready, as in a `select!`: the next call
    /// goes on where this one was, and no limit of time starts again.
    ///
    /// # Errors
    /// When it cannot be followed any longer. [`Self::task`] then says how far it was told.
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
            let advanced = match self.deadline {
                None => self.advance().await,
                Some((deadline, after)) => match tokio::time::timeout_at(deadline, self.advance()).await {
                    Ok(advanced) => advanced,
                    Err(_) => {
                        let (origin, task) = (self.client.shown(), self.task_id());
                        Err(ClientError::Timeout { origin, after, task })
                    }
                },
            };
            self.failure = advanced.err().or(self.failure.take());
        }
    }

    /// Follows to the end and says what it has come to. A gap is an error here.
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
            origin: self.client.shown(),
            status: 200,
            what: "a stream without anything on it".to_owned(),
            hint: String::new(),
        })
    }

    /// The id of the task, as soon as it is known; also after an error, for looking at the task later.
    pub fn task_id(&self) -> Option<TaskId> {
        match (&self.emitted, &self.origin) {
            (Some(task), _) => Some(task.id.clone()),
            (None, Origin::Subscribed(task)) => Some(task.clone()),
            (None, Origin::Sent { .. }) => None,
        }
    }

    /// Goes on by one step. Whatever is waited for here is kept, so that a step may be given up and taken again.
    async fn advance(&mut self) -> Result<(), ClientError> {
        if let Some(pending) = &mut self.pending {
            let brought = pending.as_mut().await;
            self.pending = None;
            return self.take(brought);
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
            // Nothing follows an end, so that what was overtaken by it would have come by now.
            StreamItem::End if self.reorder.any(|event| self.ends(event)) => {
                self.on_gap_timeout();
                Ok(())
            }
            StreamItem::End => self.ended(),
            StreamItem::Broken(why) => self.on_broken(why),
            // It would be as large the next time.
            StreamItem::TooLarge { limit } => Err(ClientError::TooLarge { origin: self.client.shown(), limit }),
        }
    }
}
