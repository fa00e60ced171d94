//! Which tasks and webhooks clients asked for, and which they were told there are.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::webhooks::judge::{Start, Version};

/// A webhook that was asked for.
#[derive(Clone, Debug)]
pub struct Hook {
    /// The message that made its task.
    pub message: String,
    /// The version it was asked for in.
    pub version: Version,
    /// With which event it begins.
    pub start: Start,
    /// Whether the server said that it is there.
    pub acknowledged: bool,
}

/// A task that was asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The epoch of the server that was asked.
    pub epoch: String,
    /// The task's id, if the server told it.
    pub task: Option<String>,
}

/// What was asked for, by all clients of all rounds.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    /// Tasks, by the id of the message that made them.
    pub tasks: BTreeMap<String, Asked>,
    /// Webhooks, by path.
    pub hooks: BTreeMap<String, Hook>,
    /// Tasks that a client has seen end: message and task.
    ended: Vec<(String, String)>,
    /// How many tasks there may be so far.
    quota: usize,
    problems: Vec<String>,
}

/// The expected that all clients write in.
#[derive(Default)]
pub struct Expected(Mutex<Pages>);

impl Expected {
    /// Everything so far.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.lock().clone()
    }

    /// What went wrong while the server was up.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        self.lock().problems.clone()
    }

    /// Lets clients ask for so many tasks in all.
    pub fn allow(&self, quota: usize) {
        self.lock().quota = quota;
    }

    /// How many tasks the server said there are.
    #[must_use]
    pub fn acknowledged(&self) -> usize {
        self.lock().tasks.values().filter(|asked| asked.task.is_some()).count()
    }

    /// Whether all tasks that may be there so far are.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let quota = self.lock().quota;
        self.acknowledged() >= quota
    }

    /// A task is about to be asked for, with its first webhook.
    pub fn ask(&self, message: &str, epoch: &str, path: &str, version: Version) {
        let mut pages = self.lock();
        pages.tasks.insert(message.to_owned(), Asked { epoch: epoch.to_owned(), task: None });
        let (message, start) = (message.to_owned(), Start::First);
        pages.hooks.insert(path.to_owned(), Hook { message, version, start, acknowledged: false });
    }

    /// The server says that the task is there.
    pub fn made(&self, message: &str, task: &str) {
        if let Some(asked) = self.lock().tasks.get_mut(message) {
            asked.task = Some(task.to_owned());
        }
    }

    /// One more webhook is about to be asked for.
    pub fn ask_later(&self, message: &str, path: &str, version: Version) {
        let (message, start) = (message.to_owned(), Start::Later { floor: None });
        self.lock().hooks.insert(path.to_owned(), Hook { message, version, start, acknowledged: false });
    }

    /// The server says that the webhook is there.
    pub fn set(&self, path: &str) {
        if let Some(hook) = self.lock().hooks.get_mut(path) {
            hook.acknowledged = true;
        }
    }

    /// Every status younger than this one came after the webhook was set.
    pub fn floor(&self, path: &str, stamp: &str) {
        if let Some(hook) = self.lock().hooks.get_mut(path) {
            hook.start = Start::Later { floor: Some(stamp.to_owned()) };
        }
    }

    /// The task has ended.
    pub fn end(&self, message: &str, task: &str) {
        self.lock().ended.push((message.to_owned(), task.to_owned()));
    }

    /// A task that has ended, by a random number; each is given once.
    #[must_use]
    pub fn take_ended(&self, number: u64) -> Option<(String, String)> {
        let mut pages = self.lock();
        let count = u64::try_from(pages.ended.len()).ok().filter(|count| *count > 0)?;
        let place = usize::try_from(number % count).ok()?;
        Some(pages.ended.swap_remove(place))
    }

    /// Something that must not happen happened while the server was up.
    pub fn problem(&self, problem: String) {
        self.lock().problems.push(problem);
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
