//! What callers are told of a failed call to a remote agent: its kind, and the agent's own words where it has refused.
//! Addresses and names of variables are the operator's, who finds the whole error in the log.

use switchboard_a2a::Error as AgentError;
use switchboard_client::{ClientError, GapReason, StreamGap};
use switchboard_host::redact;

use crate::journal_text::shortened_error;

/// The failure as the end of a sentence about the agent.
pub(super) fn failure_text(error: &ClientError) -> String {
    match error {
        ClientError::Unreachable { .. } => "there is no connection to it".to_owned(),
        ClientError::Lost { .. } => "the connection to it was lost".to_owned(),
        ClientError::Timeout { .. } => "it has not answered in time".to_owned(),
        ClientError::NoCard(tried) => match tried.iter().find_map(|attempt| attempt.status) {
            Some(status) => format!("it shows no agent card, and answered with status {status}"),
            None => "there is no connection to it".to_owned(),
        },
        ClientError::NoInterface { .. } => "its agent card has no interface that can be used".to_owned(),
        ClientError::Agent(refusal) => agent_text(refusal, error.is_breakdown()),
        ClientError::NotA2a { status, what, .. } if (200..300).contains(status) => {
            format!("invalid agent response: it answered with {}", response_kind(what))
        }
        ClientError::NotA2a { status, .. } | ClientError::Credentials { status, .. } => {
            format!("it answered with status {status}")
        }
        ClientError::TooLarge { limit, .. } => {
            format!("its answer is larger than {limit} bytes, the most that is read")
        }
        ClientError::TaskTooLarge { limit, .. } => {
            format!("its task has grown beyond {limit} bytes, the most that is kept of a task")
        }
        ClientError::Gap(StreamGap { missing: GapReason::TaskNotFound(_), .. }) => {
            "it no longer knows its task".to_owned()
        }
        ClientError::Gap(_) => "it does not tell what was missed of its task".to_owned(),
        ClientError::Invalid { field: "request", problem } => {
            format!("the message cannot be written for it: {}", words(problem))
        }
        // Secrets and settings that do not allow the call.
        _ => "it cannot be called as it is configured here".to_owned(),
    }
}

/// The whole error as the log has it: without credentials, and no longer than what an agent may make of it.
pub(super) fn log_text(error: &ClientError) -> String {
    words(&error.to_string())
}

fn agent_text(refusal: &AgentError, is_breakdown: bool) -> String {
    let what = if is_breakdown { "it broke down" } else { "it refused" };
    format!("{what}: {} ({})", words(&refusal.message), refusal.kind.entry().reason)
}

/// What a response is instead of A2A. Its media type may be any text, so that is not repeated.
fn response_kind(what: &str) -> String {
    let is_ours = ["a web page", "nothing", "something without a type", "JSON ", "an answer "];
    match is_ours.iter().any(|start| what.starts_with(*start)) {
        true => words(what),
        false => "something that is not A2A".to_owned(),
    }
}

/// The words of an agent, of any length, and perhaps with the credentials that it was sent. Those are redacted first:
/// what is left of one that is cut off may no longer look like one.
fn words(text: &str) -> String {
    shortened_error(&redact::text(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use switchboard_a2a::{ErrorKind, TaskId};
    use switchboard_client::CardAttempt;
    use switchboard_egress::SendError;

    use super::*;

    const ORIGIN: &str = "http://10.0.0.5:8080";

    fn origin() -> String {
        ORIGIN.to_owned()
    }

    #[test]
    fn a_caller_is_told_the_kind_of_a_failure_and_no_address_or_variable() {
        let attempt = |status| {
            let (url, problem, location) = (origin(), origin(), Some(origin()));
            CardAttempt { url, status, is_asked: true, problem, is_json: false, location }
        };
        let not_a2a = |status, what: &str| ClientError::NotA2a {
            origin: origin(),
            status,
            what: what.to_owned(),
            hint: origin(),
        };
        let task = || Some(TaskId::from("r"));
        for (error, expected) in [
            (ClientError::Unreachable { origin: origin(), error: SendError::Broken }, "no connection"),
            (ClientError::Lost { origin: origin(), error: SendError::Broken }, "was lost"),
            (
                ClientError::Timeout { origin: origin(), after: std::time::Duration::from_secs(1), task: task() },
                "has not answered in time",
            ),
            (ClientError::NoCard(vec![attempt(None), attempt(Some(404))]), "status 404"),
            (ClientError::NoCard(vec![attempt(None)]), "no connection"),
            (ClientError::NoInterface { name: origin(), offered: origin() }, "no interface"),
            (ClientError::Credentials { origin: origin(), status: 401, problem: origin() }, "status 401"),
            (ClientError::Secret(format!("the variable REMOTE_KEY is not set for {ORIGIN}")), "as it is configured"),
            (ClientError::Invalid { field: "url", problem: origin() }, "as it is configured"),
            (not_a2a(502, "text/plain"), "status 502"),
            (not_a2a(302, &format!("a redirect to {ORIGIN}/x")), "status 302"),
            (not_a2a(200, ORIGIN), "invalid agent response: it answered with something that is not A2A"),
            (not_a2a(200, "JSON nested deeper than 67 levels, the most that is read"), "nested deeper than 67 levels"),
            (ClientError::TooLarge { origin: origin(), limit: 9 }, "larger than 9 bytes"),
        ] {
            let told = failure_text(&error);
            assert!(told.contains(expected), "{told}");
            assert!(!told.contains("10.0.0.5") && !told.contains("REMOTE_KEY"), "{told}");
        }
    }

    #[test]
    fn the_words_of_an_agent_are_told_in_part_and_without_credentials() {
        let said = |message: String| ClientError::Agent(AgentError::with_message(ErrorKind::InvalidParams, message));
        let told = failure_text(&said("not for Bearer abcdef0123456789".to_owned()));
        assert!(told.starts_with("it refused: not for Bearer ***"), "{told}");
        let told = failure_text(&said(format!("a{}", "ä".repeat(10_000))));
        assert!(told.contains('…') && told.len() < 2_200, "{}", told.len());
        assert!(log_text(&said("x".repeat(10_000))).len() < 2_200);
        // The beginning of one that is cut off is none of its words either.
        let told = failure_text(&said(format!("{}Bearer abcdef0123456789 is wrong", "x ".repeat(1_018))));
        assert!(told.contains("Bearer ***") && !told.contains("abc"), "{told}");
        let broken = ClientError::Agent(AgentError::with_message(ErrorKind::Internal, "out of memory"));
        assert!(failure_text(&broken).starts_with("it broke down: out of memory"));
    }
}
