//! The result of a turn whose program exited without a result of its own.

use crate::adapters::dialogue::{Exit, FailureKind, Steps};
use crate::adapters::messages::Messages;

/// What makes a turn a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Success {
    /// The program reports it; exit code 0 proves nothing.
    Result,
    /// Exit code 0: a plain program has no other way to report it.
    Exit,
}

/// Finishes the turn of a program that has exited.
pub(crate) fn finish(
    title: &str,
    success: Success,
    interrupted: bool,
    exit: &Exit,
    messages: &mut Messages,
    steps: &mut Steps,
) {
    messages.end(steps);
    let how = format!("{title} {}", exit.describe());
    match (success, exit.code) {
        _ if interrupted => steps.fail(FailureKind::Interrupted, format!("{title} was told to stop")),
        (Success::Exit, Some(0)) => steps.done(messages.answer()),
        (Success::Exit, Some(_)) => steps.fail(FailureKind::Reported, how),
        (Success::Result, Some(0)) => {
            steps.fail(FailureKind::NoResult, format!("{how}, without saying how the turn went"));
        }
        (Success::Result, Some(_)) | (_, None) => steps.fail(FailureKind::NoResult, how),
    }
}
