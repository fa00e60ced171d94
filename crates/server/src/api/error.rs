//! Errors of the operator API.

use http::{Response, StatusCode};
use switchboard_engine::store::StoreError;

use crate::Body;
use crate::edge::json_response;

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("this server was started without webhooks")]
    NoWebhooks,
    #[error("{name} is {given:?} and must be {wanted}")]
    Parameter { name: &'static str, given: String, wanted: &'static str },
    #[error("there is no parameter {name:?} here, {}", offered(known))]
    UnknownParameter { name: String, known: &'static [&'static str] },
    #[error("{0} is there more than once: send it once")]
    Repeated(String),
    #[error("{0}")]
    Query(String),
    #[error("there is no {what} {number}")]
    Missing { what: &'static str, number: i64 },
    #[error("webhook {webhook} is {state}, only {wanted} can be {done}")]
    WrongState { webhook: i64, state: String, wanted: &'static str, done: &'static str },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ApiError {
    pub(crate) fn response(&self) -> Response<Body> {
        let status = match self {
            Self::NoWebhooks | Self::Missing { .. } => StatusCode::NOT_FOUND,
            Self::Parameter { .. } | Self::UnknownParameter { .. } | Self::Repeated(_) | Self::Query(_) => {
                StatusCode::BAD_REQUEST
            }
            Self::WrongState { .. } => StatusCode::CONFLICT,
            // What never works is not told to be tried again.
            Self::Store(StoreError::TooLarge { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Store(StoreError::Missing) => StatusCode::NOT_FOUND,
            Self::Store(
                StoreError::VersionConflict { .. }
                | StoreError::Ended
                | StoreError::KeyTaken
                | StoreError::TooManyWebhooks { .. }
                | StoreError::TreeFull { .. },
            ) => StatusCode::CONFLICT,
            Self::Store(error) => return unavailable(error),
        };
        json_response::error(status, &self.to_string())
    }
}

fn offered(known: &[&str]) -> String {
    match known {
        [] => "nor any other".to_owned(),
        known => format!("only {}", known.join(", ")),
    }
}

/// 503: the store does not work now, and may soon.
pub(super) fn unavailable(error: &StoreError) -> Response<Body> {
    let milliseconds = match error {
        StoreError::Overloaded { delay_ms } => *delay_ms,
        _ => 1_000,
    };
    json_response::later(&error.to_string(), milliseconds.div_ceil(1_000).max(1))
}
