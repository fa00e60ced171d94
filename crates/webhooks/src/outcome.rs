//! The outcome of one attempt: delivered, to be retried, or a dead letter, by the HTTP status or the error.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Response, StatusCode};
use switchboard_egress::{SendError, UrlRefusal};

use crate::retry_policy::retry_after;

/// What an error says, and how a private address that the SSRF guard refused can be allowed.
pub(crate) fn with_hint(error: &impl std::fmt::Display, refusal: Option<&UrlRefusal>) -> String {
    let hint = match refusal.is_some_and(UrlRefusal::is_private) {
        true => "; the operator of this server can allow it with webhooks.allowedHosts or webhooks.allowedCidrs",
        false => "",
    };
    format!("{error}{hint}")
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttemptOutcome {
    Delivered,
    /// With the receiver's `Retry-After`.
    Retry {
        after: Option<Duration>,
    },
    /// No retry can succeed: a dead letter.
    Dead,
    /// The endpoint wants no more deliveries of this webhook.
    Disabled,
}

impl AttemptOutcome {
    /// The outcome, the status if there was a response, and the problem for operators.
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
                let refusal = match error {
                    SendError::Refused(refusal) => Some(refusal),
                    _ => None,
                };
                let outcome = match refusal {
                    // What a name resolves to may change.
                    None | Some(UrlRefusal::NotPublic) => Self::Retry { after: None },
                    Some(_) => Self::Dead,
                };
                (outcome, None, with_hint(error, refusal))
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

    /// The label of the metric.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retry { .. } => "failed",
            Self::Dead => "dead",
            Self::Disabled => "disabled",
        }
    }
}
