//! How a turn went when its program has ended and nothing else has decided it.

use crate::adapters::dialogue::{Exit, FailureKind, Steps};
use crate::adapters::generic::said::Said;

/// What makes a turn good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Success {
    /// The program says so; ending with code 0 proves nothing.
    Result,
    /// Ending with code 0: a plain program has no other way to say so.
    Exit,
}

/// Finishes the turn of a program that has ended. `title` is what people call it.
pub(crate) fn finish(
    title: &str,
    success: Success,
    interrupted: bool,
    exit: &Exit,
    said: &mut Said,
    steps: &mut Steps,
) {
    said.end(steps);
    let how = format!("{title} {}", exit.describe());
    match (success, exit.code) {
        _ if interrupted => steps.fail(FailureKind::Interrupted, format!("{title} was told to stop")),
        (Success::Exit, Some(0)) => steps.done(said.answer()),
        (Success::Exit, Some(_)) => steps.fail(FailureKind::Reported, how),
        (Success::Result, Some(0)) => {
            steps.fail(FailureKind::NoResult, format!("{how}, without saying how the turn went"));
        }
        (Success::Result, Some(_)) | (_, None) => steps.fail(FailureKind::NoResult, how),
    }
}
