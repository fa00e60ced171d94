//! Shared by the adapters of programs that write one JSON object per line and read no input during a turn.

use serde_json::Value;

use crate::adapters::dialogue::{Exit, FailureKind, Steps};
use crate::adapters::json::parse;

/// Messages for people are truncated to this many characters: some programs quote a whole server response.
const LONGEST_MESSAGE: usize = 2000;

/// The advice when a program exits without a result.
pub(crate) const HOW_TO_GO_ON: &str =
    "send another message in the same context to go on, and run `switchboard doctor` if it happens again";

/// The exit code of a child that catches a signal: 128 and the signal's number.
const INTERRUPTED: i32 = 128 + SIGINT;
const TERMINATED: i32 = 128 + SIGTERM;
const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

/// One line, if it is a JSON object. Members are read by name: one that is missing reads as null.
pub(crate) fn object(line: &str) -> Option<Value> {
    parse(line).filter(Value::is_object)
}

pub(crate) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A message for people, short enough to be shown.
pub(crate) fn message(text: &str) -> String {
    crate::adapters::cut(text.trim(), LONGEST_MESSAGE).into_owned()
}

/// The failure text when a program refused a tool that is allowed here: no operator decided that, and the work may be
/// unfinished.
pub(crate) fn refused_by_itself(name: &str, tool: &str, why: &str) -> String {
    let next = format!("look at {name}'s own settings and at permissions of this agent");
    message(&format!("{name} refused to use {tool} without asking: {}; {next}", message(why).trim_end_matches('.')))
}

/// Fails a turn whose program exited without a result, where no better reason is known.
pub(crate) fn ended_without_result(name: &str, exit: &Exit, interrupted: bool, steps: &mut Steps) {
    let stopped = interrupted
        || matches!(exit.code, Some(INTERRUPTED | TERMINATED))
        || matches!(exit.signal, Some(SIGINT | SIGTERM));
    if stopped {
        steps.fail(FailureKind::Interrupted, format!("{name} was stopped"));
    } else {
        let text = format!("{name} {} before it said how the turn went; {HOW_TO_GO_ON}", exit.describe());
        steps.fail(FailureKind::NoResult, text);
    }
}
