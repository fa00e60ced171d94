//! Reconnecting when a connection was lost, refused or closed: resubscribe, resend the message, or poll the task.

use std::time::Duration;

use switchboard_a2a::{Error as AgentError, ErrorKind, Task, TaskId};
use switchboard_egress::SendError;

use super::{GapReason, Origin, StreamGap, TaskStream, Update};
use crate::ClientError;
use crate::event_stream::EventStream;
use crate::peer::MAX_RETRY_AFTER_FACTOR;

/// Between two polls: at first, and at most.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(500);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(10);

impl TaskStream {
    /// The connection was closed in order. That is the end only if the task says so.
    pub(super) fn ended(&mut self) -> Result<(), ClientError> {
        self.stream = None;
        match (&self.emitted, &self.origin) {
            (Some(task), _) if task.status.state.is_interrupted() => {
                self.is_finished = true;
                Ok(())
            }
            // An empty stream that is closed in order has started nothing, so the message is sent without streaming.
            // Agents that number their events do stream: theirs was cut off, and is reopened.
            (None, Origin::Sent { .. }) if !self.is_numbered => {
                self.send_blocking();
                Ok(())
            }
            _ => self.connection_lost_because("the stream ended before the task did".to_owned(), self.broken()),
        }
    }

    /// The connection broke. Some agents refuse a subscription that way, so the task is fetched if no event had come.
    pub(super) fn on_broken(&mut self, why: String) -> Result<(), ClientError> {
        tracing::debug!(why, "a stream broke off");
        match self.task_id().filter(|_| self.awaits_first_event && !self.is_numbered) {
            Some(task) => {
                self.stream = None;
                self.fetch_task(task, Duration::ZERO, |stream, now| stream.on_broken_confirmed(why, now));
                Ok(())
            }
            None => self.connection_lost_because(why, self.broken()),
        }
    }

    fn on_broken_confirmed(&mut self, why: String, now: Result<Task, ClientError>) -> Result<(), ClientError> {
        match now {
            Ok(now) if now.status.state.is_terminal() => {
                self.catch_up(now);
                Ok(())
            }
            Err(unknown) if self.emitted.is_none() && unknown.error_kind() == Some(ErrorKind::TaskNotFound) => {
                Err(unknown)
            }
            _ => self.connection_lost_because(why, self.broken()),
        }
    }

    pub(super) fn broken(&self) -> ClientError {
        ClientError::Lost { origin: self.client.redacted_url(), error: SendError::Broken }
    }

    /// The agent sent an error event. Some refuse a subscription that way, too.
    pub(super) fn refused(&mut self, error: ClientError) -> Result<(), ClientError> {
        self.stream = None;
        match self.task_id() {
            Some(task) if self.awaits_first_event && (may_be_fetched(&error) || self.agent_error.is_some()) => {
                self.fetch_instead(task, None);
                Ok(())
            }
            Some(_) if self.emitted.is_some() => {
                self.agent_error = Some(error.clone());
                self.connection_lost(error)
            }
            // The agent may have started the task already. That it has no streaming is believed if it does not know the
            // method, or if its card does not declare it.
            None if error.error_kind() == Some(ErrorKind::MethodNotFound)
                || error.error_kind() == Some(ErrorKind::UnsupportedOperation) && !self.declares_streaming =>
            {
                self.send_blocking();
                Ok(())
            }
            _ if error.is_transient() => self.connection_lost(error),
            _ => Err(error),
        }
    }

    fn connection_lost(&mut self, error: ClientError) -> Result<(), ClientError> {
        self.connection_lost_because(error.to_string(), error)
    }

    /// Reports the lost connection. After too many without anything new in between, a known task is polled: it may be
    /// silent for longer than connections live here. Fails if polling fails as often.
    pub(super) fn connection_lost_because(&mut self, why: String, error: ClientError) -> Result<(), ClientError> {
        (self.stream, self.overlap) = (None, None);
        self.reorder.clear();
        self.needs_confirmation |= self.emitted.is_some() && !self.is_numbered;
        self.attempt += 1;
        let attempt = self.attempt;
        if attempt > self.client.peer().retries.max_retries.max(1) {
            if self.is_polling || self.task_id().is_none() {
                return Err(error);
            }
            tracing::debug!(%error, "streams bring nothing new; the task is asked after from now on");
            (self.is_polling, self.attempt) = (true, 0);
        }
        self.ready.push_back(Update::Lost { why, attempt });
        Ok(())
    }

    /// Resubscribes, or resends the message, after the backoff of the retry policy.
    pub(super) fn reconnect(&mut self) {
        let mut wait = Duration::ZERO;
        if self.attempt > 0 {
            let retries = &self.client.peer().retries;
            let retry_after = self
                .retry_after
                .map(|retry_after| retry_after.min(retries.max_backoff.saturating_mul(MAX_RETRY_AFTER_FACTOR)));
            wait = retries.backoff(self.attempt, retry_after).unwrap_or_default();
        }
        match self.task_id() {
            Some(task) => self.subscribe(task, wait),
            None => self.send_streaming(Some(wait)),
        }
    }

    pub(super) fn on_send_opened(&mut self, opened: Result<EventStream, ClientError>) -> Result<(), ClientError> {
        match opened {
            Ok(stream) => {
                (self.stream, self.is_open) = (Some(stream), true);
                Ok(())
            }
            Err(error) if has_no_streaming(&error) => {
                self.send_blocking();
                Ok(())
            }
            Err(error) if self.is_open && is_transient(&error) => self.connection_lost(error),
            Err(error) => Err(error),
        }
    }

    /// A subscription, or a reason to fetch the task instead.
    pub(super) fn on_subscribed(&mut self, opened: Result<EventStream, ClientError>) -> Result<(), ClientError> {
        let (error, task) = match (opened, self.task_id()) {
            (Ok(stream), _) => {
                (self.stream, self.awaits_first_event, self.is_open) = (Some(stream), true, true);
                return Ok(());
            }
            (Err(error), None) => return Err(error),
            (Err(error), Some(task)) => (error, task),
        };
        if may_be_fetched(&error) {
            self.fetch_instead(task, None);
        } else if is_transient(&error) && self.is_open {
            return self.connection_lost(error);
        } else if is_transient(&error) || self.emitted.is_none() {
            return Err(error);
        } else {
            // Whatever is wrong with subscriptions here, the task may be readable.
            self.fetch_instead(task, Some(error));
        }
        Ok(())
    }

    /// Fetches a task that cannot be subscribed to: ended ones never can, and some agents have no subscriptions.
    fn fetch_instead(&mut self, task: TaskId, reason: Option<ClientError>) {
        self.fetch_task(task, Duration::ZERO, |stream, now| stream.on_fetched_instead(now, reason));
    }

    fn on_fetched_instead(
        &mut self,
        now: Result<Task, ClientError>,
        reason: Option<ClientError>,
    ) -> Result<(), ClientError> {
        let agent_error = self.agent_error.take();
        match now {
            Ok(now) => {
                (self.is_polling, self.is_open) = (true, true);
                self.catch_up(now);
                // An agent that sent an error and has no stream will not send more.
                self.failure = agent_error.filter(|_| !self.is_finished);
                Ok(())
            }
            Err(error) if is_transient(&error) && self.is_open => {
                self.agent_error = agent_error;
                self.connection_lost(error)
            }
            Err(error) => Err(agent_error.or(reason).unwrap_or_else(|| self.unknown(error))),
        }
    }

    /// The error for a task the agent refuses to return.
    fn unknown(&self, error: ClientError) -> ClientError {
        match &self.emitted {
            Some(emitted) if error.error_kind().is_some() => {
                let missing = GapReason::Unknown(error.to_string());
                ClientError::Gap(StreamGap { task: emitted.id.clone(), missing })
            }
            _ => error,
        }
    }

    /// Polls the task.
    pub(super) fn poll(&mut self) {
        let Some(task) = self.task_id() else { return };
        let usual = MIN_POLL_INTERVAL.saturating_mul(1 << self.idle_polls.min(5)).min(MAX_POLL_INTERVAL);
        let wait = self.client.peer().limits.poll.unwrap_or(usual);
        self.fetch_task(task, wait, Self::on_polled);
    }

    fn on_polled(&mut self, now: Result<Task, ClientError>) -> Result<(), ClientError> {
        let now = match now {
            Ok(now) => now,
            Err(error) if is_transient(&error) => return self.connection_lost(error),
            Err(error) => return Err(self.unknown(error)),
        };
        let before = self.ready.len();
        self.catch_up(now);
        let is_news = self.ready.len() > before;
        self.idle_polls = if is_news { 0 } else { self.idle_polls.saturating_add(1) };
        if !is_news && !self.is_finished {
            self.failure = self.agent_error.take();
        }
        self.attempt = 0;
        Ok(())
    }
}

/// Reading twice does no harm, so a timeout is transient here.
fn is_transient(error: &ClientError) -> bool {
    error.is_transient() || matches!(error, ClientError::Timeout { .. })
}

/// The agent has no streaming. Without the path, no agent has taken the message.
fn has_no_streaming(error: &ClientError) -> bool {
    matches!(error.error_kind(), Some(ErrorKind::UnsupportedOperation | ErrorKind::MethodNotFound))
        || matches!(error, ClientError::NotA2a { status: 404 | 405 | 501, .. })
}

/// The task may exist though it cannot be subscribed to. Agents of version 0.3 say so in many ways.
fn may_be_fetched(error: &ClientError) -> bool {
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
