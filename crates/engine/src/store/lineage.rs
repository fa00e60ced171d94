//! Where a task comes from: who started it, who pays for it, and which way its first message came.

use crate::ids::{CallerId, TaskKey};

/// Where a task comes from. The default is a root task that came over A2A and is paid for by its owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    /// What it was started by; nothing for a root task.
    pub ancestors: Option<Ancestors>,
    /// The caller whose limits it counts against, where that is not its owner.
    pub payer: Option<CallerId>,
    /// Which way its first message came; that of the task that has called it for a child task.
    pub via: Via,
}

/// The tasks above a child task. They may have been deleted since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ancestors {
    /// The task whose turn started it.
    pub parent: TaskKey,
    /// The root of the tree; the parent itself if that is one.
    pub root: TaskKey,
}

/// How many tasks there may be. The append that creates a child counts those that are there, so that two calls at a time
/// cannot both be the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLimits {
    /// Tasks that one task has started, ended ones too.
    pub max_children: usize,
    /// Tasks of the whole tree, the root counted.
    pub max_tree: usize,
}

/// Which way a task's first message came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Via {
    /// An A2A binding.
    #[default]
    A2a,
    /// An endpoint of the server's own API.
    Api,
    /// A schedule.
    Cron,
    /// A route from one task's event to another task.
    Route,
    /// A message of a channel, such as a chat.
    Channel,
}

impl Via {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::A2a, Self::Api, Self::Cron, Self::Route, Self::Channel];

    /// Its name in lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::A2a => "a2a",
            Self::Api => "api",
            Self::Cron => "cron",
            Self::Route => "route",
            Self::Channel => "channel",
        }
    }
}
