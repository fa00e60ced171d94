//! What became of every message that was sent, so that nothing is left at work, whenever and however checking ends.

use std::sync::{Mutex, MutexGuard, PoisonError};

use switchboard_a2a::{ErrorKind, Request};

use super::Line;
use crate::answer::{Reply, Said};
use crate::wire::{self, Sent};

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Became {
    /// It is not known: no answer came, or none from which it can be told.
    Unknown,
    /// Nothing that could be at work.
    Nothing,
    /// A task that has not ended, as far as is known.
    Task(String),
}

#[derive(Debug)]
struct Entry {
    message_id: String,
    became: Became,
}

/// All messages of ours to one interface.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Vec<Entry>>);

impl Ledger {
    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down a message that is about to be sent, if it is one.
    pub(super) fn begin(&self, request: &Request) -> Option<usize> {
        let Request::Send(send) = request else { return None };
        let mut entries = self.entries();
        entries.push(Entry { message_id: send.message.message_id.to_string(), became: Became::Unknown });
        Some(entries.len() - 1)
    }

    pub(super) fn settle(&self, entry: Option<usize>, became: Became) {
        let mut entries = self.entries();
        if let Some(entry) = entry.and_then(|entry| entries.get_mut(entry)) {
            entry.became = became;
        }
    }

    /// A task is known to have ended.
    pub(super) fn ends(&self, id: &str) {
        for entry in self.entries().iter_mut().filter(|entry| entry.became == Became::Task(id.to_owned())) {
            entry.became = Became::Nothing;
        }
    }
}

impl Line {
    /// What an answer to a message says of its task.
    pub(super) fn became(&self, reply: &Reply) -> Became {
        match &reply.said {
            Said::Result(result) => match wire::sent(self.dialect(), result) {
                Ok(Sent::Task(task)) if !self.has_ended(&task) => {
                    task["id"].as_str().map_or(Became::Unknown, |id| Became::Task(id.to_owned()))
                }
                Ok(_) => Became::Nothing,
                Err(_) => Became::Unknown,
            },
            // Those that fail in the middle may have begun something.
            Said::Refused(Some(kind)) if *kind != ErrorKind::Internal => Became::Nothing,
            _ if matches!(reply.status, 401 | 403 | 404 | 429 | 503) => Became::Nothing,
            _ => Became::Unknown,
        }
    }

    /// Cancels the tasks of ours that may be left. Those that have ended say so, and that is all.
    pub(crate) async fn tidy(&self) {
        for message in self.lost().into_iter().filter(|_| self.is_v1()) {
            if let Ok(task) = self.task_of(&message).await
                && !self.has_ended(&task)
                && let Some(id) = task["id"].as_str()
            {
                self.cancel(id).await;
            }
        }
        let open: Vec<String> = {
            let entries = self.ledger.entries();
            let tasks = entries.iter().filter_map(|entry| match &entry.became {
                Became::Task(id) => Some(id.clone()),
                Became::Unknown | Became::Nothing => None,
            });
            tasks.collect()
        };
        for id in open {
            self.cancel(&id).await;
        }
    }

    /// The messages of which nothing is known.
    pub(crate) fn lost(&self) -> Vec<String> {
        let entries = self.ledger.entries();
        let lost = entries.iter().filter(|entry| entry.became == Became::Unknown);
        lost.map(|entry| entry.message_id.clone()).collect()
    }
}
