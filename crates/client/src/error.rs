//! Why a call came to nothing, in kinds that a caller can act on. Messages hold no credentials and no bodies, apart from
//! the first words of an answer that nobody expected.

use std::fmt;
use std::time::Duration;

use switchboard_a2a::{Error as AgentError, ErrorKind, TaskId};
use switchboard_egress::{Phase, Refusal, SendError};
use thiserror::Error;

use crate::follow::Gap;
use crate::redact::shown;

/// Why a call came to nothing.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// What was asked for cannot be asked for.
    #[error("{field}: {problem}")]
    Invalid {
        /// What is wrong.
        field: &'static str,
        /// What about it, and what would be right.
        problem: String,
    },
    /// The agent's address cannot be called.
    #[error("{url} cannot be called: {refusal}")]
    Address {
        /// The address as it was given.
        url: String,
        /// What is wrong with it.
        refusal: Refusal,
    },
    /// No card was found at any of the places where one would be.
    #[error("no agent card was found: {}", places(.0))]
    NoCard(Vec<NoCardAt>),
    /// The card offers nothing that is spoken here.
    #[error("{name:?} offers no interface that can be used: {offered}")]
    NoInterface {
        /// Who.
        name: String,
        /// What it offers instead, and what was asked for.
        offered: String,
    },
    /// The agent cannot be reached; it has not seen the request.
    #[error("{origin} cannot be reached: {error}")]
    Unreachable {
        /// Where.
        origin: String,
        /// Why.
        error: SendError,
    },
    /// The connection was lost after the request had left. Whether the agent has acted on it is not known.
    #[error("{origin} was lost: {error}")]
    Lost {
        /// Where.
        origin: String,
        /// How.
        error: SendError,
    },
    /// The time for a call is over.
    #[error("{origin} gave no answer within {} s{}", .after.as_secs_f32(), of_task(.task.as_ref()))]
    Timeout {
        /// Where.
        origin: String,
        /// How long it was waited for.
        after: Duration,
        /// The task that may still be at work.
        task: Option<TaskId>,
    },
    /// No credentials, wrong ones, or not enough of them.
    #[error("{origin} answered {status}: {problem}")]
    Credentials {
        /// Where.
        origin: String,
        /// 401 or 403.
        status: u16,
        /// What the agent or the client says about it.
        problem: String,
    },
    /// A secret that was to be read when it is needed is not there.
    #[error("{0}")]
    Secret(String),
    /// The agent has refused, in the words of the protocol.
    #[error("the agent refused: {} ({})", .0.message, .0.kind.entry().reason)]
    Agent(AgentError),
    /// Something answered that does not speak the protocol.
    #[error("{origin} answered {status} with {what}, not with A2A{}", quoted(.hint))]
    NotA2a {
        /// Where.
        origin: String,
        /// The HTTP status.
        status: u16,
        /// What it looks like.
        what: String,
        /// Its first words.
        hint: String,
    },
    /// The answer is larger than what is read.
    #[error("the answer of {origin} is larger than {limit} bytes, the most that is read")]
    TooLarge {
        /// Where.
        origin: String,
        /// The most that is read.
        limit: usize,
    },
    /// What was told of a task is more than what is kept of one.
    #[error("task {task} has grown beyond {limit} bytes, the most that is kept of a task")]
    TaskTooLarge {
        /// The task, which may still be at work.
        task: TaskId,
        /// The most that is kept.
        limit: usize,
    },
    /// A stream could not be gone on with, and part of it is missing.
    #[error(transparent)]
    Gap(#[from] Gap),
}

impl ClientError {
    /// The kind of refusal, if the agent has refused.
    pub fn refusal(&self) -> Option<ErrorKind> {
        match self {
            Self::Agent(error) => Some(error.kind),
            _ => None,
        }
    }

    /// The JSON-RPC code that the agent has refused with: its own number, also where nobody else knows it.
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Agent(error) => Some(error.code()),
            _ => None,
        }
    }

    /// Whether the request surely had no effect, so that sending it again cannot do anything twice.
    pub fn is_without_effect(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Agent(error) => error.kind == ErrorKind::Overloaded,
            // Whoever counts requests does so before anything else, whatever says it.
            Self::NotA2a { status, .. } => *status == 429,
            _ => false,
        }
    }

    /// Whether the same may well succeed in a moment.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { error, .. } | Self::Lost { error, .. } => passes(error),
            Self::Agent(error) => error.kind == ErrorKind::Overloaded,
            Self::NotA2a { status, .. } => matches!(status, 429 | 502..=504),
            _ => false,
        }
    }

    /// What the transport says, told apart by whether the request may have arrived.
    pub(crate) fn transport(origin: &str, error: SendError, after: Duration) -> Self {
        let origin = origin.to_owned();
        match error {
            SendError::Timeout { phase: Phase::Answer } => Self::Timeout { origin, after, task: None },
            SendError::Broken | SendError::NotHttp => Self::Lost { origin, error },
            error => Self::Unreachable { origin, error },
        }
    }
}

/// Whether a fault of the transport may be gone in a moment.
fn passes(error: &SendError) -> bool {
    !matches!(error, SendError::Refused(_) | SendError::Tls(_) | SendError::NotHttp | SendError::Method(_))
}

/// A place where a card would be, and what was found there instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoCardAt {
    /// The place.
    pub url: String,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// What was found.
    pub problem: String,
    /// Whether what was found is JSON, so that it may be meant to be a card.
    pub is_json: bool,
    /// Where the answer says that it has moved to.
    pub location: Option<String>,
}

impl NoCardAt {
    /// A place with nothing that could be a card.
    pub(crate) fn new(url: &str, status: Option<u16>, problem: String) -> Self {
        Self { url: shown(url), status, problem, is_json: false, location: None }
    }
}

fn places(tried: &[NoCardAt]) -> String {
    let tried: Vec<String> = tried.iter().map(|NoCardAt { url, problem, .. }| format!("{url}: {problem}")).collect();
    tried.join("; ")
}

fn of_task(task: Option<&TaskId>) -> String {
    task.map_or_else(String::new, |task| format!("; task {task} may still be at work"))
}

fn quoted(hint: &str) -> impl fmt::Display {
    if hint.is_empty() { String::new() } else { format!(": {hint:?}") }
}
