//! What is done when a connection is lost, refused or over: the best of what the agent has to go on with.

use std::time::Duration;

use switchboard_a2a::{Error as AgentError, ErrorKind, Task, TaskId};
use switchboard_egress::SendError;

use super::errand::Brought;
use super::{Followed, Gap, Missing, Origin, Update};
use crate::ClientError;
use crate::connection::Connection;
use crate::peer::MOST_PATIENCE;

/// Between two questions how a task is: at first, and at most.
const FIRST_LOOK: Duration = Duration::from_millis(500);
const LAST_LOOK: Duration = Duration::from_secs(10);

impl Followed {
    /// The connection has come to its end in order. That is the end of the story only if the task says so.
    pub(super) fn ended(&mut self) -> Result<(), ClientError> {
        self.connection = None;
        match (&self.told, &self.origin) {
            (Some(task), _) if task.status.state.is_interrupted() => {
                self.is_over = true;
                Ok(())
            }
            // An agent that says nothing at all and ends that in order has begun nothing, so the message is sent the other
            // way. Agents that number their events have streams for sure: theirs was cut off, and is begun again.
            (None, Origin::Sent { .. }) if !self.is_numbered => {
                self.send_whole();
                Ok(())
            }
            _ => {
                let origin = self.client.shown();
                let error = ClientError::Lost { origin, error: SendError::Broken };
                self.lost_for("the stream ended before the task did".to_owned(), error)
            }
        }
    }

    /// The connection is torn. Some agents refuse a subscription that way, so one without a word is asked about.
    pub(super) fn broke_off(&mut self, why: String) -> Result<(), ClientError> {
        tracing::debug!(why, "a stream broke off");
        match self.task_id().filter(|_| self.is_silent && !self.is_numbered) {
            Some(task) => {
                self.connection = None;
                self.picture(task, Duration::ZERO, |now| Brought::BrokeOff { why, now });
                Ok(())
            }
            None => self.lost_for(why, self.broken()),
        }
    }

    pub(super) fn has_broken_off(&mut self, why: String, now: Result<Task, ClientError>) -> Result<(), ClientError> {
        match now {
            Ok(now) if now.status.state.is_terminal() => {
                self.catch_up(now);
                Ok(())
            }
            Err(unknown) if self.told.is_none() && unknown.refusal() == Some(ErrorKind::TaskNotFound) => Err(unknown),
            _ => self.lost_for(why, self.broken()),
        }
    }

    fn broken(&self) -> ClientError {
        ClientError::Lost { origin: self.client.shown(), error: SendError::Broken }
    }

    /// The agent has given up on a connection. Some refuse that way, too.
    pub(super) fn refused(&mut self, error: ClientError) -> Result<(), ClientError> {
        self.connection = None;
        match self.task_id() {
            Some(task) if self.is_silent && (may_still_be_asked_for(&error) || self.gave_up.is_some()) => {
                self.ask_for(task, None);
                Ok(())
            }
            Some(_) if self.told.is_some() => {
                self.gave_up = Some(error.clone());
                self.lost(error)
            }
            // Where a stream was opened, the agent may have begun. It says that it has none of them: that is believed of
            // one that does not know the method, or that promises none.
            None if error.refusal() == Some(ErrorKind::MethodNotFound)
                || error.refusal() == Some(ErrorKind::UnsupportedOperation) && !self.has_streams =>
            {
                self.send_whole();
                Ok(())
            }
            _ if error.is_passing() => self.lost(error),
            _ => Err(error),
        }
    }

    fn lost(&mut self, error: ClientError) -> Result<(), ClientError> {
        self.lost_for(error.to_string(), error)
    }

    /// The connection is of no more use. If that has happened too often without anything new in between, a task that is
    /// known is asked after from now on: it may be quiet for longer than connections live here. Gives up if that fails as
    /// often.
    pub(super) fn lost_for(&mut self, why: String, error: ClientError) -> Result<(), ClientError> {
        (self.connection, self.overlap) = (None, None);
        self.early.forget();
        self.is_doubtful |= self.told.is_some() && !self.is_numbered;
        self.attempt += 1;
        let attempt = self.attempt;
        if attempt > self.client.peer().retries.most.max(1) {
            if self.is_polling || self.task_id().is_none() {
                return Err(error);
            }
            tracing::debug!(%error, "streams bring nothing new; the task is asked after from now on");
            (self.is_polling, self.attempt) = (true, 0);
        }
        self.ready.push_back(Update::Lost { why, attempt });
        Ok(())
    }

    /// Takes the story up again.
    pub(super) fn take_up(&mut self) {
        let mut wait = Duration::ZERO;
        if self.attempt > 0 {
            let retries = &self.client.peer().retries;
            let asked = self.come_back.map(|asked| asked.min(retries.longest.saturating_mul(MOST_PATIENCE)));
            wait = retries.wait(self.attempt, asked).unwrap_or_default();
        }
        match self.task_id() {
            Some(task) => self.resume(task, wait),
            None => self.begin_again(wait),
        }
    }

    pub(super) fn has_begun(&mut self, opened: Result<Connection, ClientError>) -> Result<(), ClientError> {
        match opened {
            Ok(connection) => {
                (self.connection, self.is_open) = (Some(connection), true);
                Ok(())
            }
            Err(error) if is_not_offered(&error) => {
                self.send_whole();
                Ok(())
            }
            Err(error) if self.is_open && is_passing(&error) => self.lost(error),
            Err(error) => Err(error),
        }
    }

    /// A connection to a task that is known, or a reason to ask how it is instead.
    pub(super) fn has_resumed(&mut self, opened: Result<Connection, ClientError>) -> Result<(), ClientError> {
        let (error, task) = match (opened, self.task_id()) {
            (Ok(connection), _) => {
                (self.connection, self.is_silent, self.is_open) = (Some(connection), true, true);
                return Ok(());
            }
            (Err(error), None) => return Err(error),
            (Err(error), Some(task)) => (error, task),
        };
        if may_still_be_asked_for(&error) {
            self.ask_for(task, None);
        } else if is_passing(&error) && self.is_open {
            return self.lost(error);
        } else if is_passing(&error) || self.told.is_none() {
            return Err(error);
        } else {
            // Whatever is wrong with subscriptions here, the task may be asked after nonetheless.
            self.ask_for(task, Some(error));
        }
        Ok(())
    }

    /// Asks how a task is that cannot be subscribed to: ended ones never can, and some agents know no subscriptions.
    fn ask_for(&mut self, task: TaskId, reason: Option<ClientError>) {
        self.picture(task, Duration::ZERO, |now| Brought::Asked { now, reason });
    }

    pub(super) fn has_asked(
        &mut self,
        now: Result<Task, ClientError>,
        reason: Option<ClientError>,
    ) -> Result<(), ClientError> {
        let gave_up = self.gave_up.take();
        match now {
            Ok(now) => {
                (self.is_polling, self.is_open) = (true, true);
                self.catch_up(now);
                // An agent that has said that something went wrong and keeps no stream will not come back to it.
                self.failure = gave_up.filter(|_| !self.is_over);
                Ok(())
            }
            Err(error) if is_passing(&error) && self.is_open => {
                self.gave_up = gave_up;
                self.lost(error)
            }
            Err(error) => Err(gave_up.or(reason).unwrap_or_else(|| self.unknown(error))),
        }
    }

    /// What it means that an agent refuses to say how a task is.
    fn unknown(&self, error: ClientError) -> ClientError {
        match &self.told {
            Some(told) if error.refusal().is_some() => {
                let missing = Missing::Unknown(error.to_string());
                ClientError::Gap(Gap { task: told.id.clone(), missing })
            }
            _ => error,
        }
    }

    /// Asks how the task is, after a while.
    pub(super) fn look(&mut self) {
        let Some(task) = self.task_id() else { return };
        let usual = FIRST_LOOK.saturating_mul(1 << self.looks.min(5)).min(LAST_LOOK);
        let wait = self.client.peer().limits.poll.unwrap_or(usual);
        self.picture(task, wait, Brought::Looked);
    }

    pub(super) fn has_looked(&mut self, now: Result<Task, ClientError>) -> Result<(), ClientError> {
        let now = match now {
            Ok(now) => now,
            Err(error) if is_passing(&error) => return self.lost(error),
            Err(error) => return Err(self.unknown(error)),
        };
        let before = self.ready.len();
        self.catch_up(now);
        let is_news = self.ready.len() > before;
        self.looks = if is_news { 0 } else { self.looks.saturating_add(1) };
        if !is_news && !self.is_over {
            self.failure = self.gave_up.take();
        }
        self.attempt = 0;
        Ok(())
    }
}

/// Asking after something twice does no harm, so that here silence is no reason to give up either.
fn is_passing(error: &ClientError) -> bool {
    error.is_passing() || matches!(error, ClientError::Timeout { .. })
}

/// The agent has no streams. Where there is not even a place for them, nobody can have taken the message.
fn is_not_offered(error: &ClientError) -> bool {
    matches!(error.refusal(), Some(ErrorKind::UnsupportedOperation | ErrorKind::MethodNotFound))
        || matches!(error, ClientError::NotA2a { status: 404 | 405 | 501, .. })
}

/// The task may well be there though it cannot be subscribed to. Agents of version 0.3 say so in many ways.
fn may_still_be_asked_for(error: &ClientError) -> bool {
    let kinds = [
        ErrorKind::UnsupportedOperation,
        ErrorKind::MethodNotFound,
        ErrorKind::TaskNotFound,
        ErrorKind::InvalidParams,
        ErrorKind::Internal,
    ];
    matches!(error, ClientError::Agent(AgentError { kind, .. }) if kinds.contains(kind))
        || matches!(error, ClientError::NotA2a { status: 404 | 405 | 501, .. })
}
