//! How a remote agent is followed.

use std::time::Duration;

/// How a remote agent is followed; its defaults are those of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteSettings {
    /// Between two looks beside push notifications.
    pub poll: Duration,
    /// How long a message waits for an agent that cannot be reached.
    pub connect_within: Duration,
    /// How long a task is followed whose agent cannot be reached any more.
    pub lost_after: Duration,
    /// How long a task may take there, without the time it waits for people.
    pub deadline: Option<Duration>,
    pub resend: Resend,
    pub replies: RepliesAs,
}

/// What becomes of a message that may have arrived or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// It is sent again only if the agent recognises the repetition.
    Safe,
    Always,
}

/// What a message in place of a task becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepliesAs {
    /// A completed task.
    Task,
    /// The message.
    Either,
}

impl Default for RemoteSettings {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(30),
            connect_within: Duration::from_secs(120),
            lost_after: Duration::from_secs(600),
            deadline: Some(Duration::from_secs(24 * 3_600)),
            resend: Resend::Safe,
            replies: RepliesAs::Task,
        }
    }
}
