//! Reconnecting when a connection was lost, refused or closed: resubscribe, resend the message, or poll the task.

use std::time::Duration;

use switchboard_a2a::{Error as AgentError, ErrorKind, Task, TaskId};
use switchboard_egress::jitter;

use super::state::{Call, Machine, Origin, Reading, Stage, State, Why};
use super::{GapReason, StreamGap, Update};
use crate::ClientError;
use crate::peer::MAX_RETRY_AFTER_FACTOR;

/// Between two polls: at first, and at most.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(500);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(10);

impl Machine {
    /// The connection was closed in order. That is the end only if the task says so.
    pub(super) fn ended(&mut self) -> Result<(), ClientError> {
        self.disconnect();
        match (&self.emitted.task, &self.origin) {
            (Some(task), _) if task.status.state.is_interrupted() => {
                self.finish();
                Ok(())
            }
            // An empty stream that is closed in order has started nothing, so the message is sent without streaming.
            // Agents that number their events do stream: theirs was cut off, and is reopened.
            (None, Origin::Sent { .. }) if !self.rules.is_numbered && !self.rules.sends_once => {
                self.call(Call::SendBlocking);
                Ok(())
            }
            _ => self.connection_lost_because("the stream ended before the task did".to_owned(), self.broken()),
        }
    }

    /// The connection broke. Some agents refuse a subscription that way, so the task is fetched if no event had come.
    pub(super) fn on_broken(&mut self, why: String) -> Result<(), ClientError> {
        tracing::debug!(why, "a stream broke off");
        let is_refusal = self.awaits_first_event() && !self.rules.is_numbered;
        match self.task_id().filter(|_| is_refusal) {
            Some(task) => {
                self.disconnect();
                self.fetch(task, Duration::ZERO, Why::Broken { problem: why });
                Ok(())
            }
            None => self.connection_lost_because(why, self.broken()),
        }
    }

    pub(super) fn on_broken_confirmed(
        &mut self,
        why: String,
        now: Result<Task, ClientError>,
    ) -> Result<(), ClientError> {
        match now {
            Ok(now) if now.status.state.is_terminal() => {
                self.catch_up(now);
                Ok(())
            }
            Err(unknown) if self.emitted.task.is_none() && unknown.error_kind() == Some(ErrorKind::TaskNotFound) => {
                Err(unknown)
            }
            _ => self.connection_lost_because(why, self.broken()),
        }
    }

    /// The agent sent an error event. Some refuse a subscription that way, too.
    pub(super) fn refused(&mut self, error: ClientError) -> Result<(), ClientError> {
        let awaits_first_event = self.awaits_first_event();
        self.disconnect();
        match self.task_id() {
            Some(task) if awaits_first_event && (may_be_fetched(&error) || self.failures.agent_error.is_some()) => {
                self.fetch_instead(task, None);
                Ok(())
            }
            Some(_) if self.emitted.task.is_some() => {
                self.failures.agent_error = Some(error.clone());
                self.connection_lost(error)
            }
            // The agent may have started the task already. That it has no streaming is believed if it does not know the
            // method, or if its card does not declare it.
            None if error.error_kind() == Some(ErrorKind::MethodNotFound)
                || error.error_kind() == Some(ErrorKind::UnsupportedOperation)
                    && self.rules.streaming != Some(true) =>
            {
                self.call(Call::SendBlocking);
                Ok(())
            }
            _ if error.is_transient() => self.connection_lost(error),
            _ => {
                self.give_up(error);
                Ok(())
            }
        }
    }

    fn connection_lost(&mut self, error: ClientError) -> Result<(), ClientError> {
        self.connection_lost_because(error.to_string(), error)
    }

    /// Reports the lost connection. After too many without anything new in between, a known task is polled: it may be
    /// silent for longer than connections live here. Fails if polling fails as often.
    pub(super) fn connection_lost_because(&mut self, why: String, error: ClientError) -> Result<(), ClientError> {
        self.disconnect();
        self.cursor.overlap = None;
        self.cursor.reorder.clear();
        self.cursor.needs_confirmation |= self.emitted.task.is_some() && !self.rules.is_numbered;
        self.failures.attempt += 1;
        let attempt = self.failures.attempt;
        if attempt > self.rules.retries.max_retries.max(1) {
            if self.is_polling() || self.task_id().is_none() {
                return Err(error);
            }
            tracing::debug!(%error, "streams bring nothing new; the task is asked after from now on");
            self.stage = Stage::Polling { idle: 0 };
            self.failures.attempt = 0;
        }
        self.ready.push_back(Update::Lost { why, attempt });
        Ok(())
    }

    /// Resubscribes, or resends the message, after the backoff of the retry policy.
    pub(super) fn reconnect(&mut self) {
        let mut wait = Duration::ZERO;
        if self.failures.attempt > 0 {
            let retries = &self.rules.retries;
            let retry_after = self
                .failures
                .retry_after
                .map(|retry_after| retry_after.min(retries.max_backoff.saturating_mul(MAX_RETRY_AFTER_FACTOR)));
            wait = retries.backoff(self.failures.attempt, retry_after).unwrap_or_default();
        }
        match self.task_id() {
            Some(task) => self.call(Call::Subscribe { task, wait }),
            None => self.call(Call::SendStreaming { again_after: Some(wait) }),
        }
    }

    pub(super) fn on_send_opened(&mut self, opened: Result<(), ClientError>) -> Result<(), ClientError> {
        match opened {
            Ok(()) => {
                self.opened();
                self.state = State::Reading(Reading::default());
                Ok(())
            }
            Err(error) if has_no_streaming(&error) || self.has_no_place_for_streams(&error) => {
                self.call(Call::SendBlocking);
                Ok(())
            }
            Err(error) if self.is_open() && is_transient(&error) => self.connection_lost(error),
            Err(error) => Err(error),
        }
    }

    /// Whether a not-found is about the path: a message that begins a task names none, so no task was not found. Such an
    /// answer in JSON reads like one about a task.
    fn has_no_place_for_streams(&self, error: &ClientError) -> bool {
        let Origin::Sent { request: Some(request), .. } = &self.origin else { return false };
        request.message.task_id.is_none()
            && error.status() == Some(404)
            && error.error_kind() == Some(ErrorKind::TaskNotFound)
    }

    /// A subscription, or a reason to fetch the task instead.
    pub(super) fn on_subscribed(&mut self, opened: Result<(), ClientError>) -> Result<(), ClientError> {
        let (error, task) = match (opened, self.task_id()) {
            (Ok(()), _) => {
                self.opened();
                self.state = State::Reading(Reading { awaits_first_event: true, is_behind: false });
                return Ok(());
            }
            (Err(error), None) => return Err(error),
            (Err(error), Some(task)) => (error, task),
        };
        if may_be_fetched(&error) {
            self.fetch_instead(task, None);
        } else if is_transient(&error) && self.is_open() {
            return self.connection_lost(error);
        } else if is_transient(&error) || self.emitted.task.is_none() {
            return Err(error);
        } else {
            // Whatever is wrong with subscriptions here, the task may be readable.
            self.fetch_instead(task, Some(error));
        }
        Ok(())
    }

    /// Fetches a task that cannot be subscribed to: ended ones never can, and some agents have no subscriptions.
    fn fetch_instead(&mut self, task: TaskId, reason: Option<ClientError>) {
        self.fetch(task, Duration::ZERO, Why::Instead { reason });
    }

    pub(super) fn on_fetched_instead(
        &mut self,
        now: Result<Task, ClientError>,
        reason: Option<ClientError>,
    ) -> Result<(), ClientError> {
        let agent_error = self.failures.agent_error.take();
        match now {
            Ok(now) => {
                if !self.is_polling() {
                    self.stage = Stage::Polling { idle: 0 };
                }
                self.catch_up(now);
                // An agent that sent an error and has no stream will not send more.
                if let Some(error) = agent_error {
                    self.give_up(error);
                }
                Ok(())
            }
            Err(error) if is_transient(&error) && self.is_open() => {
                self.failures.agent_error = agent_error;
                self.connection_lost(error)
            }
            Err(error) => match agent_error {
                Some(error) => {
                    self.give_up(error);
                    Ok(())
                }
                // That the agent does not know the task says more than why it cannot be subscribed to.
                None if error.error_kind() == Some(ErrorKind::TaskNotFound) => Err(self.unknown(error)),
                None => Err(reason.unwrap_or_else(|| self.unknown(error))),
            },
        }
    }

    /// The error for a task the agent refuses to return.
    fn unknown(&self, error: ClientError) -> ClientError {
        match &self.emitted.task {
            // An agent that has broken down may know it when it is well again.
            Some(emitted) if error.error_kind().is_some_and(|kind| kind != ErrorKind::Internal) => {
                let missing = match error.error_kind() {
                    Some(ErrorKind::TaskNotFound) => GapReason::TaskNotFound(error.to_string()),
                    _ => GapReason::Unknown(error.to_string()),
                };
                ClientError::Gap(StreamGap { task: emitted.id.clone(), missing })
            }
            _ => error,
        }
    }

    /// Polls the task.
    pub(super) fn poll(&mut self) {
        let (Some(task), Stage::Polling { idle }) = (self.task_id(), self.stage) else { return };
        let usual = MIN_POLL_INTERVAL.saturating_mul(1 << idle.min(5)).min(MAX_POLL_INTERVAL);
        self.fetch(task, spread(self.rules.poll.unwrap_or(usual)), Why::Poll);
    }

    pub(super) fn on_polled(&mut self, now: Result<Task, ClientError>) -> Result<(), ClientError> {
        let now = match now {
            Ok(now) => now,
            Err(error) if is_transient(&error) => return self.connection_lost(error),
            Err(error) => return Err(self.unknown(error)),
        };
        let before = self.ready.len();
        self.catch_up(now);
        let is_news = self.ready.len() > before;
        if let Stage::Polling { idle } = &mut self.stage {
            *idle = if is_news { 0 } else { idle.saturating_add(1) };
        }
        if !is_news && let Some(error) = self.failures.agent_error.take() {
            self.give_up(error);
        }
        self.failures.attempt = 0;
        Ok(())
    }
}

/// A fifth more or less, so that tasks that began together are not all asked after at once.
fn spread(interval: Duration) -> Duration {
    interval.mul_f64(0.8 + 0.4 * jitter())
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
    // A gateway's error says nothing of subscriptions.
    if error.is_transient() {
        return false;
    }
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
