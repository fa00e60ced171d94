//! Errors of a call, in kinds a caller can act on. Messages hold no credentials and no bodies, apart from an excerpt of
//! a response that is not A2A.

use std::fmt;
use std::time::Duration;

use switchboard_a2a::{Error as AgentError, ErrorKind, TaskId};
use switchboard_egress::{SendError, TimeoutPhase, UrlRefusal};
use thiserror::Error;

use crate::redact::redact_url;
use crate::task_stream::StreamGap;

/// Why a call failed.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The request or a setting is invalid.
    #[error("{field}: {problem}")]
    Invalid {
        field: &'static str,
        /// The problem, and what would be right.
        problem: String,
    },
    /// The agent's address cannot be called.
    #[error("{url} cannot be called: {refusal}")]
    Address {
        /// The address as it was given.
        url: String,
        /// What is wrong with it.
        refusal: UrlRefusal,
    },
    /// No card was found at any of the usual urls.
    #[error("no agent card was found: {}", places(.0))]
    NoCard(Vec<CardAttempt>),
    /// No interface on the card can be used.
    #[error("{name:?} offers no interface that can be used: {offered}")]
    NoInterface {
        name: String,
        /// What it offers instead, and what was asked for.
        offered: String,
    },
    /// The agent cannot be reached; it has not seen the request.
    #[error("{origin} cannot be reached: {error}")]
    Unreachable { origin: String, error: SendError },
    /// The connection was lost after the request was sent. Whether the agent has acted on it is not known.
    #[error("{origin} was lost: {error}")]
    Lost { origin: String, error: SendError },
    /// The call timed out.
    #[error("{origin} gave no answer within {} s{}", .after.as_secs_f32(), of_task(.task.as_ref()))]
    Timeout {
        origin: String,
        after: Duration,
        /// The task that may still be running.
        task: Option<TaskId>,
    },
    /// Credentials are missing, wrong or insufficient.
    #[error("{origin} answered {status}: {problem}")]
    Credentials {
        origin: String,
        /// 401 or 403.
        status: u16,
        /// The agent's message, or what is wanted.
        problem: String,
    },
    /// A secret cannot be read or must not be sent.
    #[error("{0}")]
    Secret(String),
    /// The agent returned a protocol error.
    #[error("the agent refused: {} ({})", .0.message, .0.kind.entry().reason)]
    Agent(AgentError),
    /// The response is not A2A.
    #[error("{origin} answered {status} with {what}, not with A2A{}", quoted(.hint))]
    NotA2a { origin: String, status: u16, what: String, hint: String },
    /// The response or an event is too large.
    #[error("the answer of {origin} is larger than {limit} bytes, the most that is read")]
    TooLarge { origin: String, limit: usize },
    /// The task of a stream has grown too large.
    #[error("task {task} has grown beyond {limit} bytes, the most that is kept of a task")]
    TaskTooLarge {
        /// The task, which may still be running.
        task: TaskId,
        limit: usize,
    },
    /// Part of a stream is missing.
    #[error(transparent)]
    Gap(#[from] StreamGap),
}

impl ClientError {
    /// The kind of the agent's error.
    pub fn error_kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Agent(error) => Some(error.kind),
            _ => None,
        }
    }

    /// The JSON-RPC code of the agent's error, also if it is not a known one.
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Agent(error) => Some(error.code()),
            _ => None,
        }
    }

    /// Whether the agent has broken down over the request. That is no refusal: it may have carried the request out.
    pub fn is_breakdown(&self) -> bool {
        let is_of_kind = matches!(self.error_kind(), Some(ErrorKind::Internal | ErrorKind::InvalidAgentResponse));
        // An error without a code has no kind of its own, and its status says that the request was refused.
        is_of_kind && !self.status().is_some_and(|status| (300..500).contains(&status))
    }

    /// The status of the HTTP response in which the agent's error came; none if it came on a stream.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Agent(error) => error.received_status,
            Self::NotA2a { status, .. } | Self::Credentials { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the request surely had no effect, so that a retry is safe.
    pub fn is_without_effect(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            // Rate limits are checked before anything else.
            Self::Agent(error) => is_busy(error) || status_of_gateway(error) == Some(429),
            Self::NotA2a { status, .. } => *status == 429,
            _ => false,
        }
    }

    /// Whether the error is transient.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { error, .. } | Self::Lost { error, .. } => passes(error),
            Self::Agent(error) => is_busy(error) || matches!(status_of_gateway(error), Some(429 | 502..=504)),
            Self::NotA2a { status, .. } => matches!(status, 429 | 502..=504),
            _ => false,
        }
    }

    /// A transport error, by whether the request may have arrived.
    pub(crate) fn transport(origin: &str, error: SendError, after: Duration) -> Self {
        let origin = origin.to_owned();
        match error {
            SendError::Timeout { phase: TimeoutPhase::Response } => Self::Timeout { origin, after, task: None },
            SendError::Broken | SendError::NotHttp => Self::Lost { origin, error },
            error => Self::Unreachable { origin, error },
        }
    }
}

fn is_busy(error: &AgentError) -> bool {
    matches!(error.kind, ErrorKind::Overloaded | ErrorKind::Cooldown)
}

/// The HTTP status of an error that may be a gateway's: its JSON has a message and no code, so its kind says nothing.
fn status_of_gateway(error: &AgentError) -> Option<u16> {
    error.received_status.filter(|_| error.kind == ErrorKind::Internal)
}

/// Whether a transport error is transient.
fn passes(error: &SendError) -> bool {
    !matches!(error, SendError::Refused(_) | SendError::Tls(_) | SendError::NotHttp | SendError::Method(_))
}

/// A url where a card would be, and what was found there instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardAttempt {
    pub url: String,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// Whether it was asked; false if too many connections are open here.
    pub is_asked: bool,
    pub problem: String,
    /// Whether it is JSON, and may be meant to be a card.
    pub is_json: bool,
    /// The target of a redirect.
    pub location: Option<String>,
}

impl CardAttempt {
    pub(crate) fn new(url: &str, status: Option<u16>, problem: String) -> Self {
        Self { url: redact_url(url), status, is_asked: true, problem, is_json: false, location: None }
    }
}

fn places(tried: &[CardAttempt]) -> String {
    let tried: Vec<String> = tried.iter().map(|CardAttempt { url, problem, .. }| format!("{url}: {problem}")).collect();
    tried.join("; ")
}

fn of_task(task: Option<&TaskId>) -> String {
    task.map_or_else(String::new, |task| format!("; task {task} may still be running"))
}

fn quoted(hint: &str) -> impl fmt::Display {
    if hint.is_empty() { String::new() } else { format!(": {hint:?}") }
}
