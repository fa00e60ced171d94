//! Why a ceremony is not created, changed, removed or run.

use switchboard_engine::store::StoreError;

use crate::definition_reader::Problem;

/// Why a change of a ceremony is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CeremonyError {
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<Problem>),
    #[error("there is a ceremony {0} already: change it, or choose another id")]
    Exists(String),
    #[error("ceremony {0} is in a file of the workspace: change it there")]
    InFile(String),
    #[error("there is no ceremony {0}")]
    NotFound(String),
    #[error("{0}")]
    Forbidden(String),
    #[error("ceremony {id} has version {current} now: read it again")]
    Version { id: String, current: u64 },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Engine(#[from] switchboard_engine::Error),
}

impl CeremonyError {
    /// One problem with the input.
    pub(super) fn invalid(key: &str, wrong: impl Into<String>, right: impl Into<String>) -> Self {
        Self::Invalid(vec![Problem::new(key, wrong, right)])
    }
}
