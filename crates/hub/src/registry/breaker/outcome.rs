//! What a request says of the agent it was made to, by how it has ended.

use switchboard_client::{CardAttempt, ClientError};
use switchboard_egress::SendError;

/// What a request says of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// The agent answered, if only with a refusal.
    Answered,
    /// The agent was not reached, broke off, or a server error came instead of an answer.
    Failed,
    /// The request never left this process.
    NotSent,
}

impl RequestOutcome {
    /// The outcome of a call.
    pub fn of<T>(result: &Result<T, ClientError>) -> Self {
        match result {
            Ok(_) => Self::Answered,
            Err(error) => Self::of_error(error),
        }
    }

    /// The outcome of a failed call.
    pub fn of_error(error: &ClientError) -> Self {
        let failed = |attempt: &CardAttempt| attempt.is_asked && attempt.status.is_none_or(|status| status >= 500);
        match error {
            // Not the agent's fault: too many connections are open here.
            ClientError::Unreachable { error: SendError::ConnectionLimit, .. } => Self::NotSent,
            ClientError::Unreachable { .. } | ClientError::Lost { .. } | ClientError::Timeout { .. } => Self::Failed,
            ClientError::NotA2a { status, .. } if *status >= 500 => Self::Failed,
            // Over JSON-RPC an error mostly comes as an answer (200), and what the protocol has a refusal for is one.
            ClientError::Agent(_) if error.is_breakdown() && error.status() >= Some(500) => Self::Failed,
            ClientError::NoCard(tried) if tried.iter().any(failed) => Self::Failed,
            ClientError::NoCard(tried) if tried.iter().any(|attempt| !attempt.is_asked) => Self::NotSent,
            ClientError::Secret(_) | ClientError::Invalid { .. } | ClientError::Address { .. } => Self::NotSent,
            _ => Self::Answered,
        }
    }
}

#[cfg(test)]
mod tests {
    use switchboard_a2a::{Error, ErrorKind};

    use super::RequestOutcome::{Answered, Failed, NotSent};
    use super::*;

    #[test]
    fn an_agent_is_not_blamed_for_a_lack_of_connections_here() {
        let outcome = |error| RequestOutcome::of_error(&ClientError::Unreachable { origin: "agent".to_owned(), error });
        assert_eq!(outcome(SendError::ConnectionLimit), NotSent);
        assert_eq!(outcome(SendError::Broken), Failed);
    }

    #[test]
    fn a_card_is_not_missing_because_of_a_lack_of_connections_here_or_its_size() {
        let attempt = |status, is_asked| {
            let (url, problem) = ("agent".to_owned(), String::new());
            CardAttempt { url, status, is_asked, problem, is_json: false, location: None }
        };
        for (tried, expected) in [
            (vec![attempt(None, false)], NotSent),
            (vec![attempt(Some(404), true), attempt(None, false)], NotSent),
            (vec![attempt(None, true), attempt(None, false)], Failed),
            (vec![attempt(Some(500), true)], Failed),
            (vec![attempt(Some(200), true), attempt(Some(404), true)], Answered),
        ] {
            assert_eq!(RequestOutcome::of_error(&ClientError::NoCard(tried.clone())), expected, "{tried:?}");
        }
    }

    #[test]
    fn a_server_error_with_an_error_of_the_protocol_in_it_is_a_failure_and_a_refusal_is_none() {
        for (kind, received_status, expected) in [
            (ErrorKind::Internal, Some(500), Failed),
            (ErrorKind::InvalidAgentResponse, Some(502), Failed),
            (ErrorKind::Internal, Some(200), Answered),
            (ErrorKind::Internal, None, Answered),
            (ErrorKind::Overloaded, Some(503), Answered),
            (ErrorKind::UnsupportedOperation, Some(501), Answered),
            (ErrorKind::TaskNotFound, Some(404), Answered),
        ] {
            let error = ClientError::Agent(Error { received_status, ..Error::new(kind) });
            assert_eq!(RequestOutcome::of_error(&error), expected, "{kind:?} {received_status:?}");
        }
    }
}
