//! Records the outcome of every message, so that no task is left running, whenever and however checking ends.

use std::sync::{Mutex, MutexGuard, PoisonError};

use switchboard_a2a::{ErrorKind, Request};

use super::TestedInterface;
use crate::reply::{Reply, ReplyContent};
use crate::wire::{self, SendResult};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    /// No reply, or none that tells.
    Unknown,
    /// There is no task, or it has ended.
    Finished,
    /// A task that is not known to have ended.
    Running(String),
}

#[derive(Debug)]
struct SentMessage {
    message_id: String,
    outcome: SendOutcome,
}

/// All messages sent to one interface.
#[derive(Debug, Default)]
pub(super) struct SentMessages(Mutex<Vec<SentMessage>>);

impl SentMessages {
    fn entries(&self) -> MutexGuard<'_, Vec<SentMessage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the message of a send request before it is sent.
    pub(super) fn begin(&self, request: &Request) -> Option<usize> {
        let Request::Send(send) = request else { return None };
        let mut entries = self.entries();
        entries.push(SentMessage { message_id: send.message.message_id.to_string(), outcome: SendOutcome::Unknown });
        Some(entries.len() - 1)
    }

    pub(super) fn resolve(&self, entry: Option<usize>, outcome: SendOutcome) {
        let mut entries = self.entries();
        if let Some(entry) = entry.and_then(|entry| entries.get_mut(entry)) {
            entry.outcome = outcome;
        }
    }

    pub(super) fn ends(&self, id: &str) {
        for entry in self.entries().iter_mut().filter(|entry| entry.outcome == SendOutcome::Running(id.to_owned())) {
            entry.outcome = SendOutcome::Finished;
        }
    }
}

impl TestedInterface {
    /// What a reply says of the message's task.
    pub(super) fn outcome_of(&self, reply: &Reply) -> SendOutcome {
        match &reply.content {
            ReplyContent::Result(result) => match wire::sent(self.dialect(), result) {
                Ok(SendResult::Task(task)) if !self.has_ended(&task) => {
                    task["id"].as_str().map_or(SendOutcome::Unknown, |id| SendOutcome::Running(id.to_owned()))
                }
                Ok(_) => SendOutcome::Finished,
                Err(_) => SendOutcome::Unknown,
            },
            // Agents that fail in the middle may have started a task.
            ReplyContent::Error(Some(kind)) if *kind != ErrorKind::Internal => SendOutcome::Finished,
            _ if matches!(reply.status, 401 | 403 | 404 | 429 | 503) => SendOutcome::Finished,
            _ => SendOutcome::Unknown,
        }
    }

    /// Cancels our tasks that may be running; for one that has ended the refusal is ignored.
    pub(crate) async fn cancel_leftovers(&self) {
        for message in self.unresolved().into_iter().filter(|_| self.is_v1()) {
            if let Ok(task) = self.task_of(&message).await
                && !self.has_ended(&task)
                && let Some(id) = task["id"].as_str()
            {
                self.cancel(id).await;
            }
        }
        let open: Vec<String> = {
            let entries = self.sent_messages.entries();
            let tasks = entries.iter().filter_map(|entry| match &entry.outcome {
                SendOutcome::Running(id) => Some(id.clone()),
                SendOutcome::Unknown | SendOutcome::Finished => None,
            });
            tasks.collect()
        };
        for id in open {
            self.cancel(&id).await;
        }
    }

    /// The messages whose outcome is not known.
    pub(crate) fn unresolved(&self) -> Vec<String> {
        let entries = self.sent_messages.entries();
        let unresolved = entries.iter().filter(|entry| entry.outcome == SendOutcome::Unknown);
        unresolved.map(|entry| entry.message_id.clone()).collect()
    }
}
