//! What is done about a remote agent that does not answer: it is waited for, within limits.

use std::time::Duration;

use switchboard_a2a::ErrorKind;
use switchboard_client::{CardAttempt, ClientError, GapReason};

/// The first wait; each next one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The waits for an agent that is away, up to a limit in all.
pub(super) struct OutageBackoff {
    since: Option<Duration>,
    limit: Duration,
    attempt: u32,
    /// The failure that it was told of last.
    why: Option<ClientError>,
}

impl OutageBackoff {
    pub(super) fn new(limit: Duration) -> Self {
        Self { since: None, limit, attempt: 0, why: None }
    }

    /// How long to wait after a failure at this time; nothing once the limit has passed.
    pub(super) fn wait(&mut self, now: Duration, at_least: Option<Duration>) -> Option<Duration> {
        let since = *self.since.get_or_insert(now);
        let left = self.limit.checked_sub(now.saturating_sub(since)).filter(|left| !left.is_zero())?;
        let usual = FIRST_WAIT.saturating_mul(1 << self.attempt.min(6)).min(LONGEST_WAIT);
        self.attempt += 1;
        Some(usual.max(at_least.unwrap_or_default()).min(left))
    }

    /// It has failed at this time.
    pub(super) fn begin(&mut self, now: Duration, why: &ClientError) {
        self.since.get_or_insert(now);
        self.why = Some(why.clone());
    }

    /// The last failure that it was told of.
    pub(super) fn why(&mut self) -> Option<ClientError> {
        self.why.take()
    }

    /// Whether it has failed since it was last well.
    pub(super) fn has_begun(&self) -> bool {
        self.since.is_some()
    }

    /// A stream has lasted so long, and may have brought news. A task may be silent for hours, so one that has held is as
    /// good: the next failure begins another outage.
    pub(super) fn held(&mut self, lasted: Duration, had_news: bool) {
        if had_news || lasted >= LONGEST_WAIT {
            (self.since, self.attempt) = (None, 0);
        }
    }
}

/// Whether an error says that the agent is away, not what it thinks. One whose secret cannot be read is as good as away: it can
/// be called once the configuration is mended.
pub(super) fn is_outage(error: &ClientError) -> bool {
    let is_silent = |attempt: &CardAttempt| attempt.status.is_none_or(|status| status >= 500 || status == 429);
    match error {
        ClientError::NoCard(tried) => tried.iter().any(is_silent),
        ClientError::Timeout { .. } | ClientError::Secret(_) => true,
        error => error.is_transient() || error.is_without_effect(),
    }
}

/// Whether an answer to a message leaves open whether the agent has taken it: it broke down over it, or the answer is none
/// of an agent. A refusal, a redirect and what HTTP refuses say that it has not.
pub(super) fn is_unclear(error: &ClientError) -> bool {
    if is_outage(error) {
        return false;
    }
    match error {
        ClientError::Agent(_) => error.is_breakdown(),
        ClientError::NotA2a { status, .. } => !(300..500).contains(status),
        ClientError::Lost { .. }
        | ClientError::TooLarge { .. }
        | ClientError::TaskTooLarge { .. }
        | ClientError::Gap(_) => true,
        _ => false,
    }
}

/// Whether such an answer may be another one later: that of a server which is not up again, or a lost connection.
pub(super) fn is_passing(error: &ClientError) -> bool {
    match error {
        ClientError::NotA2a { status, .. } => *status >= 500,
        ClientError::Lost { .. } => true,
        _ => false,
    }
}

/// Whether an error about a task that is followed says that there is no use in asking again. An agent that has broken
/// down, or a proxy in front of it, may well know its task later.
pub(super) fn is_final(error: &ClientError) -> bool {
    match error {
        ClientError::Agent(error) => matches!(error.kind, ErrorKind::TaskNotFound),
        ClientError::Unreachable { .. }
        | ClientError::Lost { .. }
        | ClientError::Timeout { .. }
        | ClientError::NotA2a { .. }
        | ClientError::Secret(_)
        | ClientError::NoCard(_) => false,
        _ => true,
    }
}

/// Whether the agent has said that it does not know the task.
pub(super) fn is_forgotten(error: &ClientError) -> bool {
    match error {
        ClientError::Gap(gap) => matches!(gap.missing, GapReason::TaskNotFound(_)),
        error => error.error_kind() == Some(ErrorKind::TaskNotFound),
    }
}

/// Whether the message has surely not arrived.
pub(super) fn is_not_sent(error: &ClientError) -> bool {
    matches!(error, ClientError::NoCard(_) | ClientError::Secret(_)) || error.is_without_effect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_the_limit_and_begin_anew_after_an_answer() {
        let mut backoff = OutageBackoff::new(Duration::from_secs(10));
        let second = Duration::from_secs;
        assert_eq!(backoff.wait(second(100), None), Some(second(1)));
        assert_eq!(backoff.wait(second(101), None), Some(second(2)));
        assert_eq!(backoff.wait(second(103), Some(second(5))), Some(second(5)), "as long as the breaker says");
        assert_eq!(backoff.wait(second(108), None), Some(second(2)), "no longer than the limit");
        assert_eq!(backoff.wait(second(110), None), None);
        backoff.held(second(59), false);
        assert_eq!(backoff.wait(second(170), None), None, "it was hardly back");
        backoff.held(second(60), false);
        assert_eq!(backoff.wait(second(500), None), Some(second(1)), "a silent task was followed again");
        backoff.held(Duration::ZERO, true);
        assert_eq!(backoff.wait(second(900), None), Some(second(1)));
    }

    #[test]
    fn an_answer_that_is_neither_a_task_nor_a_refusal_leaves_open_whether_the_message_has_arrived() {
        let agent = |kind| ClientError::Agent(switchboard_a2a::Error::new(kind));
        let answered = |status| {
            let (origin, what, hint) = ("here".to_owned(), "a page".to_owned(), String::new());
            ClientError::NotA2a { origin, status, what, hint }
        };
        let too_large = ClientError::TooLarge { origin: "here".to_owned(), limit: 1 };
        for error in [agent(ErrorKind::Internal), agent(ErrorKind::InvalidAgentResponse), answered(200), too_large] {
            assert_eq!((is_unclear(&error), is_passing(&error)), (true, false), "{error}");
        }
        assert!(is_unclear(&answered(500)) && is_passing(&answered(500)));
        // A gateway's JSON has no code, so its status says what it is.
        let gateway = |status| {
            let error = switchboard_a2a::Error::new(ErrorKind::Internal);
            ClientError::Agent(switchboard_a2a::Error { received_status: Some(status), ..error })
        };
        for (status, expected) in [
            (200, (true, false, false)),
            (302, (false, false, false)),
            (404, (false, false, false)),
            (429, (false, true, true)),
            (500, (true, false, false)),
            (502, (false, true, false)),
            (503, (false, true, false)),
            (504, (false, true, false)),
        ] {
            let error = gateway(status);
            assert_eq!((is_unclear(&error), is_outage(&error), is_not_sent(&error)), expected, "{status}");
        }
        let refusals = [ErrorKind::InvalidParams, ErrorKind::UnsupportedOperation, ErrorKind::TaskNotFound].map(agent);
        let outages = [agent(ErrorKind::Overloaded), answered(429), answered(503)];
        for error in refusals.into_iter().chain(outages).chain([answered(302), answered(404)]) {
            assert!(!is_unclear(&error), "{error}");
        }
    }

    #[test]
    fn only_what_the_agent_says_of_the_task_ends_the_matter() {
        let agent = |kind| ClientError::Agent(switchboard_a2a::Error::new(kind));
        let answered = |status| {
            let (origin, what, hint) = ("here".to_owned(), "a page".to_owned(), String::new());
            ClientError::NotA2a { origin, status, what, hint }
        };
        for error in [agent(ErrorKind::Internal), agent(ErrorKind::Overloaded), answered(500), answered(503)] {
            assert!(!is_final(&error), "{error}");
        }
        let credentials = ClientError::Credentials { origin: "here".to_owned(), status: 401, problem: String::new() };
        for error in [agent(ErrorKind::TaskNotFound), credentials] {
            assert!(is_final(&error), "{error}");
        }
    }
}
