//! Why a route is not registered, changed or removed.

use switchboard_engine::store::StoreError;

use crate::definition_reader::Problem;

/// Why a change of a route is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RouteError {
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<Problem>),
    #[error("there is a route {0} already: change it, or choose another name")]
    Exists(String),
    #[error("route {0} is in a file of the workspace: change it there")]
    InFile(String),
    #[error("there is no registered route {0}")]
    NotFound(String),
    #[error("route {name} has version {current} now: read it again")]
    Version { name: String, current: u64 },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RouteError {
    /// One problem with the input.
    pub(super) fn invalid(key: &str, wrong: impl Into<String>, right: impl Into<String>) -> Self {
        Self::Invalid(vec![Problem { key: key.to_owned(), wrong: wrong.into(), right: right.into() }])
    }
}
