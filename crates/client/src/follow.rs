//! A task followed to its end over as many connections as it takes. Whoever reads it sees every event once and in order,
//! and is told where that was not possible.
//!
//! Agents differ in what they offer after a connection is lost. The best take up the stream exactly where it was left
//! (`Last-Event-ID`); others give a picture of the task, from which what was missed is told; the rest can only be asked
//! again and again how the task is. A stream that just ends is never taken for success.

mod catch_up;
mod early;
mod hear;
mod position;
mod take_up;
mod update;

use std::collections::VecDeque;
use std::time::Duration;

use switchboard_a2a::extension::RESUMPTION;
use switchboard_a2a::{SendRequest, SendResponse, StreamResponse, Task, TaskId};
use tokio::time::Instant;

use crate::client::Client;
use crate::connection::{Connection, Heard};
use crate::{ClientError, Context};
use early::Early;
use position::Position;
use take_up::is_not_offered;
pub use update::{Gap, Missing, Update};

/// What was overtaken on the way is not further behind than this.
const OVERTAKEN: Duration = Duration::from_millis(50);

/// A task that is followed.
pub struct Followed {
    client: Client,
    context: Context,
    origin: Origin,
    connection: Option<Connection>,
    is_polling: bool,
    /// Nothing has come yet on the connection, which is a subscription.
    is_silent: bool,
    is_over: bool,
    ready: VecDeque<Update>,
    /// What was told, as one task.
    told: Option<Task>,
    reply: Option<SendResponse>,
    /// Where to go on, in the agent's words and in numbers.
    last_id: Option<String>,
    position: Option<Position>,
    /// The agent's numbers have no holes, so that a hole is something lost.
    is_numbered: bool,
    /// What has come before its turn.
    early: Early,
    attempt: u32,
    /// How often in a row there was nothing new to see.
    looks: u32,
    come_back: Option<Duration>,
    deadline: Option<(Instant, Duration)>,
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
        let is_offered = match client.card(&context).await {
            Ok(found) => found.card.capabilities.streaming != Some(false),
            // Whoever has no card is asked.
            Err(_) => true,
        };
        let origin = Origin::Sent { request: Box::new(request), key };
        let mut followed = Self::new(client, context, origin).await;
        if is_offered {
            match followed.begin().await {
                Ok(()) => return Ok(followed),
                Err(error) if is_not_offered(&error) => {}
                Err(error) => return Err(error),
            }
        }
        followed.send_whole().await?;
        Ok(followed)
    }

    pub(crate) async fn subscribed(client: Client, context: Context, task: TaskId) -> Result<Self, ClientError> {
        let mut followed = Self::new(client, context, Origin::Subscribed(task.clone())).await;
        match followed.resume(&task).await {
            Ok(()) => Ok(followed),
            Err(error) => Err(error),
        }
    }

    async fn new(client: Client, context: Context, origin: Origin) -> Self {
        let is_numbered = client.declares(&context, RESUMPTION).await;
        let limit = client.peer().limits.total;
        let deadline = limit.and_then(|total| Some((Instant::now().checked_add(total)?, total)));
        Self {
            client,
            context,
            origin,
            connection: None,
            is_polling: false,
            is_silent: false,
            is_over: false,
            ready: VecDeque::new(),
            told: None,
            reply: None,
            last_id: None,
            position: None,
            is_numbered,
            early: Early::default(),
            attempt: 0,
            looks: 0,
            come_back: None,
            deadline,
        }
    }

    /// The task as far as it was told.
    pub fn task(&self) -> Option<&Task> {
        self.told.as_ref()
    }

    /// What it has come to so far: the task as told, or a direct reply.
    pub fn response(&self) -> Option<SendResponse> {
        self.reply.clone().or_else(|| self.told.clone().map(SendResponse::Task))
    }

    /// The next update; none once the task has ended or has begun to wait for somebody, or a direct reply was given. That a
    /// task was waiting before a message was sent does not count: the message may be what it waits for.
    ///
    /// # Errors
    /// When it cannot be followed any longer. [`Self::task`] then says how far it was told.
    pub async fn next(&mut self) -> Result<Option<Update>, ClientError> {
        loop {
            if let Some(update) = self.ready.pop_front() {
                return Ok(Some(update));
            }
            if self.is_over {
                return Ok(None);
            }
            match self.deadline {
                None => self.advance().await?,
                Some((deadline, after)) => {
                    let advanced = tokio::time::timeout_at(deadline, self.advance()).await;
                    advanced.map_err(|_| ClientError::Timeout {
                        origin: self.client.peer().url.clone(),
                        after,
                        task: self.task_id(),
                    })??;
                }
            }
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
            origin: self.client.peer().url.clone(),
            status: 200,
            what: "a stream without anything on it".to_owned(),
            hint: String::new(),
        })
    }

    fn task_id(&self) -> Option<TaskId> {
        match (&self.told, &self.origin) {
            (Some(task), _) => Some(task.id.clone()),
            (None, Origin::Subscribed(task)) => Some(task.clone()),
            (None, Origin::Sent { .. }) => None,
        }
    }

    /// Goes on by one step.
    async fn advance(&mut self) -> Result<(), ClientError> {
        if self.is_polling {
            return self.look().await;
        }
        let Some(connection) = &mut self.connection else { return self.take_up().await };
        let heard = match self.early.is_empty() {
            true => connection.next().await,
            false => match tokio::time::timeout(OVERTAKEN, connection.next()).await {
                Ok(heard) => heard,
                Err(_) => return self.doubt(),
            },
        };
        match heard {
            Heard::Event { frame, mark } => self.hear(*frame, mark).await,
            Heard::ComeBack(wait) => {
                self.come_back = Some(wait);
                Ok(())
            }
            Heard::Error(error) => self.refused(ClientError::Agent(error)).await,
            // Nothing follows an end, so that what was overtaken by it would have come by now.
            Heard::End if self.early.any(Self::ends) => self.doubt(),
            Heard::End => self.ended().await,
            Heard::Broken(why) => self.broke_off(why).await,
            // It would be as large the next time.
            Heard::TooLarge { limit } => Err(ClientError::TooLarge { origin: self.client.peer().url.clone(), limit }),
        }
    }

    /// Whether an update ends what is followed: nothing comes after it, or nothing until somebody has done something,
    /// which may take days.
    fn ends(update: &StreamResponse) -> bool {
        let StreamResponse::StatusUpdate(update) = update else { return false };
        let state = update.status.state;
        state.is_terminal() || state.is_interrupted()
    }
}
