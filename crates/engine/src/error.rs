//! The errors of the kernel; the server turns them into each dialect's errors.

use std::sync::Arc;

use switchboard_a2a::{MessageId, TaskId, TaskState, Timestamp};

use crate::delegation::DelegationRefused;
use crate::engine::state_label;
use crate::ids::{CallerId, Seq};
use crate::store::StoreError;

/// Why a request was refused. Nothing was changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Unknown, evicted, or another caller's: the caller cannot tell which.
    #[error("no task {0}")]
    TaskNotFound(TaskId),
    /// The task has no such webhook.
    #[error("task {task} has no push notification configuration{}", id.as_ref().map(|id| format!(" {id:?}")).unwrap_or_default())]
    WebhookNotFound {
        /// The task.
        task: TaskId,
        /// Its name, if one was asked for.
        id: Option<String>,
    },
    /// The task has already ended.
    #[error("task {id} cannot be canceled: it is already {}", state_label(*state))]
    NotCancelable {
        /// The task.
        id: TaskId,
        /// How it ended.
        state: TaskState,
    },
    /// The question was answered or settled, or its task has ended, or it never asked it.
    #[error("task {task} does not wait for the answer to question {question}{}", decided_by(by.as_ref()))]
    QuestionClosed {
        /// The task.
        task: TaskId,
        /// The number of the status that asked.
        question: Seq,
        /// Who has answered it, if that is known.
        by: Option<CallerId>,
        /// When.
        at: Option<Timestamp>,
    },
    /// The question is for others to answer.
    #[error("only an operator of agent {agent} may answer question {question}")]
    NotReviewer {
        /// The task's agent.
        agent: String,
        /// The number of the status that asked.
        question: Seq,
    },
    /// The task is not in a state for it.
    #[error("{0}")]
    Unsupported(String),
    /// A value that cannot be right.
    #[error("{field}: {problem}")]
    Invalid {
        /// Where.
        field: &'static str,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// The agent takes or gives none of the media types.
    #[error("{0}")]
    ContentType(String),
    /// No such agent for this caller.
    #[error("{}", agent_not_found(asked, known))]
    AgentNotFound {
        /// What was asked for; empty at the root.
        asked: String,
        /// What the caller could ask for.
        known: Vec<String>,
    },
    /// The agent that was asked for does not have the skill.
    #[error(
        "agent {agent} does not offer the skill {skill:?}{}; set `force` to send it there all the same",
        offers(offered)
    )]
    SkillNotOffered {
        /// The agent.
        agent: String,
        /// The skill that was asked for.
        skill: String,
        /// The skills it has.
        offered: Vec<String>,
    },
    /// No agent that the caller may use has the skill.
    #[error("no agent here has the skill {skill:?}{}", offers(known))]
    SkillNotFound {
        /// The skill that was asked for.
        skill: String,
        /// The skills there are, the likeliest first.
        known: Vec<String>,
    },
    /// The same work was asked for a short while ago. Worth a retry.
    #[error("{key} cools down: try again in {} s", retry_after_ms.div_ceil(1_000))]
    CoolingDown {
        /// The skill, and what it is about.
        key: String,
        /// When to try again.
        retry_after_ms: u64,
    },
    /// The caller may not use the agent; nothing if that is the default agent, whose name a caller without a right to it
    /// does not learn.
    #[error("{}", forbidden(.0))]
    Forbidden(String),
    /// The guard of delegation has refused it.
    #[error(transparent)]
    Delegation(Arc<DelegationRefused>),
    /// The idempotency key was used for another message.
    #[error("the idempotency key was already used for a different message")]
    KeyReused,
    /// The agent deduplicates by message id, and this one was used for another message.
    #[error("messageId {:?} was already used for a different message, give each its own", .0.as_str())]
    MessageIdReused(MessageId),
    /// Overloaded, shutting down, or the disk fails. Worth a retry.
    #[error("{problem}")]
    Unavailable {
        /// What is in the way.
        problem: String,
        /// When to try again.
        retry_after_ms: u64,
    },
}

impl Error {
    /// A failure that may pass soon: worth another try in a second.
    pub(crate) fn retry_soon(problem: impl ToString) -> Self {
        Self::Unavailable { problem: problem.to_string(), retry_after_ms: 1_000 }
    }

    /// A line of a task's stored log that cannot be decoded; `location` says which.
    pub(crate) fn damaged_log(task: &TaskId, location: &str, error: &serde_json::Error) -> Self {
        tracing::error!(%task, location, %error, "the log of a task cannot be read");
        let problem = format!("the stored log of task {task} is damaged at {location}, run `switchboard db check`");
        Self::Unavailable { problem, retry_after_ms: 60_000 }
    }

    /// A stored task that cannot be decoded.
    pub(crate) fn damaged_task(error: &serde_json::Error) -> Self {
        tracing::error!(%error, "a stored task cannot be read");
        let problem = "a stored task is damaged, run `switchboard db check`".to_owned();
        Self::Unavailable { problem, retry_after_ms: 60_000 }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let retry_after_ms = match error {
            StoreError::TooManyWebhooks { max } => {
                let problem = format!("the task has {max} of them, which is the most it may have: delete one first");
                return Self::Invalid { field: "pushNotificationConfig", problem };
            }
            // Tried again it is as large, and the version as old.
            StoreError::TooLarge { .. } => return Self::Invalid { field: "request", problem: error.to_string() },
            StoreError::VersionConflict { .. } => return Self::Unsupported(error.to_string()),
            StoreError::CoolingDown { key, .. } => return Self::CoolingDown { key, retry_after_ms: 1_000 },
            StoreError::TreeFull { .. } => return DelegationRefused::breadth(error.to_string()).into(),
            StoreError::Overloaded { delay_ms } => delay_ms.clamp(250, 10_000),
            _ => 1_000,
        };
        Self::Unavailable { problem: error.to_string(), retry_after_ms }
    }
}

impl From<DelegationRefused> for Error {
    fn from(refused: DelegationRefused) -> Self {
        Self::Delegation(Arc::new(refused))
    }
}

/// Spawned work was dropped because the runtime stops.
impl From<tokio::task::JoinError> for Error {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::retry_soon(error)
    }
}

fn decided_by(by: Option<&CallerId>) -> String {
    by.map_or_else(String::new, |by| format!(": {by} has answered it"))
}

fn forbidden(agent: &str) -> String {
    match agent {
        "" => "this key may not call the default agent; name one that it may call".to_owned(),
        agent => format!("this key may not call agent {agent}"),
    }
}

/// At most this many names are in a message.
const NAMES_SHOWN: usize = 10;

fn offers(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names if names.len() <= NAMES_SHOWN => format!("; there is: {}", names.join(", ")),
        names => format!("; there is: {}, …", names[..NAMES_SHOWN].join(", ")),
    }
}

/// A request to the root names no agent, so the text asks for a name.
fn agent_not_found(asked: &str, known: &[String]) -> String {
    let names = match known {
        known if known.len() <= NAMES_SHOWN => known.join(", "),
        known => format!("{}, … ({} in all)", known[..NAMES_SHOWN].join(", "), known.len()),
    };
    match (asked, known) {
        ("", []) => "no agent is the default here, and this key may call none".to_owned(),
        ("", _) => format!("no agent is the default here; name one: {names}"),
        (asked, []) => format!("no agent {asked:?} here, and this key may call none"),
        (asked, _) => format!("no agent {asked:?} here; there is: {names}"),
    }
}
