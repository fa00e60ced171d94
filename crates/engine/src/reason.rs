//! Why a task ended as it did, in words programs can read: `metadata["switchboard/reason"]`.

use serde::Serialize;
use switchboard_a2a::{Json, Metadata};

/// The key under which the reason stands.
pub const REASON_KEY: &str = "switchboard/reason";

/// The key under which an agent's own word for the reason stands, where it has one.
pub const REASON_DETAIL_KEY: &str = "switchboard/reasonDetail";

/// Why a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The agent returned without a result.
    NoResult,
    /// The agent said it failed.
    AgentError,
    /// The agent panicked.
    Panic,
    /// Its process or server stopped and it could not go on.
    Interrupted,
    /// It was recovered too often without getting anywhere.
    RecoveryLimit,
    /// Question timeout: no answer came in time.
    InputExpired,
    /// The deadline passed.
    TimedOut,
    /// It went too long without any event.
    Idle,
    /// The caller stopped it.
    CanceledByCaller,
    /// The agent stopped it without having been asked to.
    CanceledByAgent,
    /// The agent would not do it.
    Rejected,
    /// It grew beyond the limit for one task.
    TooLarge,
}

impl Reason {
    /// Every reason, for documentation and its tests.
    pub const ALL: [Self; 12] = [
        Self::NoResult,
        Self::AgentError,
        Self::Panic,
        Self::Interrupted,
        Self::RecoveryLimit,
        Self::InputExpired,
        Self::TimedOut,
        Self::Idle,
        Self::CanceledByCaller,
        Self::CanceledByAgent,
        Self::Rejected,
        Self::TooLarge,
    ];

    /// The reason as it stands in metadata.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoResult => "no_result",
            Self::AgentError => "agent_error",
            Self::Panic => "panic",
            Self::Interrupted => "interrupted",
            Self::RecoveryLimit => "recovery_limit",
            Self::InputExpired => "input_expired",
            Self::TimedOut => "timed_out",
            Self::Idle => "idle",
            Self::CanceledByCaller => "canceled_by_caller",
            Self::CanceledByAgent => "canceled_by_agent",
            Self::Rejected => "rejected",
            Self::TooLarge => "too_large",
        }
    }

    /// The reason as a status event's metadata.
    pub fn metadata(self) -> Option<Metadata> {
        metadata_of(REASON_KEY, self.as_str())
    }
}

/// Metadata of one key; nothing if the value cannot be JSON.
pub(crate) fn metadata_of(key: &str, value: &(impl Serialize + ?Sized)) -> Option<Metadata> {
    let mut metadata = Metadata::default();
    metadata.insert(key, Json::from_serialize(value).ok()?);
    Some(metadata)
}
