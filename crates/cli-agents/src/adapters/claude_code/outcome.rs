//! The result of a turn.
//!
//! The exit code proves nothing, and `success` does not either: it comes with every failure of the model's service, and
//! with tools that the program refused by itself. A turn succeeded if the result says success, is no error, and lists
//! no refusal but those of the operator or the approver.

use serde_json::Value;

use super::LOGIN;
use super::approvals::Approvals;
use super::tools::permission;
use crate::adapters::dialogue::{Ending, Exit, Failure, FailureKind};
use crate::adapters::json::{list, text};
use crate::adapters::json_lines;
use crate::adapters::permissions::{Permission, Permissions};
use crate::adapters::truncate::cut;

/// Begins what it says of a conversation that it does not have.
const UNKNOWN_SESSION: &str = "No conversation found with session ID";

const LONGEST_REASON: usize = 2000;

/// The state of the run that a result is judged by.
pub(super) struct ResultContext<'a> {
    pub(super) approvals: &'a Approvals,
    pub(super) permissions: &'a Permissions,
    /// The program's name for its last error.
    pub(super) error: &'a str,
    pub(super) interrupted: bool,
}

pub(super) fn of_result(result: &Value, context: &ResultContext<'_>) -> Ending {
    let is_error = result.get("is_error").and_then(Value::as_bool).unwrap_or_default();
    if is_error || text(result, "subtype") != "success" {
        return Ending::Failed(failure(result, context));
    }
    let undecided: Vec<String> = list(result, "permission_denials")
        .iter()
        .filter(|denial| !context.approvals.was_refused(denial))
        .filter(|denial| {
            let input = &denial["tool_input"];
            permission(context.permissions, text(denial, "tool_name"), input) != Permission::Deny
        })
        .map(|denial| context.approvals.describe(denial))
        .collect();
    if !undecided.is_empty() {
        let message = format!(
            "refused without a question to the caller: {}; look at claude's own settings and at permissions of this agent",
            undecided.join("; ")
        );
        return Ending::Failed(failed(FailureKind::Refused, &message));
    }
    let answer = Some(text(result, "result")).filter(|answer| !answer.is_empty()).map(str::to_owned);
    Ending::Done { answer }
}

/// Why a run ended without a result.
pub(super) fn of_exit(exit: &Exit, interrupted: bool) -> Failure {
    let said = |words: &[&str]| {
        let says = |line: &&str| words.iter().all(|word| line.contains(word));
        exit.stderr.lines().map(str::trim).rfind(says)
    };
    if let Some(line) = said(&[UNKNOWN_SESSION]) {
        failed(FailureKind::UnknownSession, line)
    } else if let Some(line) = said(&["Session ID", "already in use"]) {
        failed(FailureKind::Reported, &format!("{line} It was begun before: take it up again, or begin another"))
    } else if let Some(line) = said(&["/login"]).or_else(|| said(&["Invalid API key"])) {
        failed(FailureKind::NotLoggedIn, &format!("{line}: {LOGIN}"))
    } else if interrupted {
        stopped()
    } else {
        // The code that runs the child adds the remedy for a refused root account.
        let next = if exit.stderr.contains("root") { String::new() } else { format!("; {}", json_lines::HOW_TO_GO_ON) };
        failed(FailureKind::NoResult, &format!("claude told no result: {}{next}", exit.describe()))
    }
}

/// The failure when the program rejects the deny hook.
pub(super) fn unruled(why: &str) -> Failure {
    let why = if why.is_empty() { "it does not say why" } else { why };
    let message = format!(
        "claude does not take the rules it is to keep, so nothing was begun: {why}; install a version that was tested \
         (`switchboard doctor` names it)"
    );
    failed(FailureKind::Reported, &message)
}

/// The failure when the model's service has rejected the credentials again.
pub(super) fn rejected(why: &str) -> Failure {
    failed(FailureKind::NotLoggedIn, &format!("the model's service rejected the credentials twice: {why}: {LOGIN}"))
}

pub(super) fn stopped() -> Failure {
    failed(FailureKind::Interrupted, "stopped, as it was told to")
}

fn failure(result: &Value, context: &ResultContext<'_>) -> Failure {
    let (subtype, reason) = (text(result, "subtype"), text(result, "terminal_reason"));
    let said = reasons(result);
    let status = result.get("api_error_status").and_then(Value::as_u64);
    let authentication = status == Some(401)
        || text(result, "api_error_type") == "authentication_error"
        || context.error == "authentication_failed";
    let (kind, message) = if said.starts_with(UNKNOWN_SESSION) {
        (FailureKind::UnknownSession, said)
    } else if reason.starts_with("aborted") || (context.interrupted && subtype == "error_during_execution") {
        return stopped();
    } else if subtype.starts_with("error_max")
        || matches!(reason, "max_turns" | "budget_exhausted" | "prompt_too_long" | "blocking_limit")
    {
        (FailureKind::Limit, said)
    } else if authentication {
        (FailureKind::NotLoggedIn, format!("{said}: {LOGIN}"))
    } else {
        (FailureKind::Reported, said)
    };
    failed(kind, &message)
}

/// Its own message of a failure: a list of errors, or the error in the place of the answer.
fn reasons(result: &Value) -> String {
    // Notes for its makers, not for people.
    let readable = |error: &&str| !error.is_empty() && !error.starts_with("[ede_diagnostic]");
    let errors: Vec<&str> = list(result, "errors").iter().filter_map(Value::as_str).filter(readable).collect();
    if !errors.is_empty() {
        return errors.join("; ");
    }
    match (text(result, "result"), text(result, "subtype")) {
        ("", "") => "claude reported a failure and no reason".to_owned(),
        ("", subtype) => format!("claude reported {subtype} and no reason"),
        (said, _) => said.to_owned(),
    }
}

fn failed(kind: FailureKind, message: &str) -> Failure {
    Failure { kind, message: cut(message, LONGEST_REASON).into_owned() }
}
