//! What an answer to a delivery means.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Response, StatusCode};
use switchboard_egress::{Refusal, SendError};

use crate::retry_policy::retry_after;

/// What would let an address pass that the guard refuses.
pub(crate) const ALLOW: &str =
    "; whoever runs this server can allow it with webhooks.allowedHosts or webhooks.allowedCidrs";

/// What becomes of a delivery after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttemptOutcome {
    Delivered,
    /// Another try, not before what the receiver asks for.
    Retry {
        after: Option<Duration>,
    },
    /// It will never be taken.
    Dead,
    /// The endpoint wants nothing of this webhook any more.
    Disabled,
}

impl AttemptOutcome {
    /// The outcome, the status if there was an answer, and what went wrong in plain words.
    pub(crate) fn of(answer: &Result<Response<Bytes>, SendError>) -> (Self, Option<u16>, String) {
        match answer {
            Ok(response) => {
                let status = response.status();
                let outcome = Self::of_status(status, || retry_after(response.headers(), SystemTime::now()));
                let problem = match outcome {
                    Self::Delivered => String::new(),
                    Self::Retry { .. } => format!("the endpoint answered {}", status.as_u16()),
                    Self::Dead => {
                        format!("the endpoint answered {}, which no further try will change", status.as_u16())
                    }
                    Self::Disabled => "the endpoint answered 410: it wants no more".to_owned(),
                };
                (outcome, Some(status.as_u16()), problem)
            }
            Err(error) => {
                let mut problem = error.to_string();
                let outcome = match error {
                    // What a name stands for may change again, with the name or with the allowlist.
                    SendError::Refused(Refusal::NotPublic) => Self::Retry { after: None },
                    SendError::Refused(_) => Self::Dead,
                    _ => Self::Retry { after: None },
                };
                if matches!(error, SendError::Refused(refusal) if refusal.is_private()) {
                    problem += ALLOW;
                }
                (outcome, None, problem)
            }
        }
    }

    fn of_status(status: StatusCode, retry_after: impl FnOnce() -> Option<Duration>) -> Self {
        match status.as_u16() {
            200..300 => Self::Delivered,
            410 => Self::Disabled,
            408 | 425 | 429 | 500.. => Self::Retry { after: retry_after() },
            _ => Self::Dead,
        }
    }

    /// As a metric label.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retry { .. } => "failed",
            Self::Dead => "dead",
            Self::Disabled => "disabled",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_meaning() {
        let outcome = |status| AttemptOutcome::of_status(StatusCode::from_u16(status).unwrap(), || None);
        for status in 100..=999 {
            let expected = match status {
                200..=299 => AttemptOutcome::Delivered,
                410 => AttemptOutcome::Disabled,
                408 | 425 | 429 | 500..=999 => AttemptOutcome::Retry { after: None },
                _ => AttemptOutcome::Dead,
            };
            assert_eq!(outcome(status), expected, "{status}");
        }
    }
}
