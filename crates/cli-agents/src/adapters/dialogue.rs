//! One run of a program: its lines in, steps out.

use serde::Serialize;

use crate::adapters::event::{Decision, Event};

/// The state of one run. No line may make it panic: lines are untrusted input.
pub trait Dialogue: Send {
    /// The child is running; nothing was read yet.
    fn begin(&mut self, _: &mut Steps) {}

    /// One line of standard output, without its end. Bytes that are no UTF-8 have been replaced. Lines that cannot be
    /// parsed are ignored, or become text where the program writes plain text.
    fn line(&mut self, line: &str, steps: &mut Steps);

    /// The child has written something without ending the line and has been quiet since: perhaps a prompt. The same
    /// text comes again in `line` if the line is ended later.
    fn pause(&mut self, _unfinished: &str, _: &mut Steps) {}

    /// An approval was decided. A request that is not open is ignored.
    fn decide(&mut self, _request: &str, _: &Decision, _: &mut Steps) {}

    /// The turn is being cancelled: writes what makes the program stop cleanly. Signals follow soon after.
    fn interrupt(&mut self, _: &mut Steps) {}

    /// The child has ended and all its lines were read. Must finish the turn if nothing has before.
    fn ended(&mut self, exit: &Exit, steps: &mut Steps);
}

/// The steps to execute, in order.
#[derive(Debug, Default, PartialEq)]
pub struct Steps(Vec<Step>);

/// One action of a dialogue.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Pass an event to the caller.
    Event(Event),
    /// Write this to the child, and a line end after it.
    Write(String),
    /// Close the child's standard input.
    CloseInput,
    /// The turn has ended. The child's input is closed, and it gets a moment to exit by itself before signals. Only the
    /// first `Finish` counts.
    Finish(Ending),
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Done {
        /// The whole answer, if the program repeats it at the end; else its last message.
        answer: Option<String>,
    },
    Failed(Failure),
}

/// Why a turn failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    pub kind: FailureKind,
    /// For people: what went wrong, in the program's own message where there is one, and the remedy if one is known.
    pub message: String,
}

/// What kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The program reported that the turn failed.
    Reported,
    /// The program refused a tool without requesting approval, so the work is not done.
    Refused,
    /// The program is not logged in, or its key was not taken.
    NotLoggedIn,
    /// The session to resume does not exist.
    UnknownSession,
    /// The program came to a limit of its own: turns, money, context.
    Limit,
    /// The program stopped because the turn was cancelled.
    Interrupted,
    /// The program exited before the turn began and may succeed when it is started again.
    NotReady,
    /// The program exited without a result.
    NoResult,
}

/// How a child ended.
/// The exit code alone is never success: real programs exit with 0 after a refused tool, a failed turn or a signal.
/// Only plain text has no other result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The end of what it wrote to standard error, without control characters.
    pub stderr: String,
}

impl Steps {
    /// Passes an event to the caller.
    pub fn event(&mut self, event: Event) {
        self.0.push(Step::Event(event));
    }

    /// Writes a line to the child.
    pub fn write(&mut self, line: impl Into<String>) {
        self.0.push(Step::Write(line.into()));
    }

    /// Closes the child's standard input.
    pub fn close_input(&mut self) {
        self.0.push(Step::CloseInput);
    }

    /// Ends the turn well.
    pub fn done(&mut self, answer: Option<String>) {
        self.finish(Ending::Done { answer });
    }

    /// Ends the turn badly.
    pub fn fail(&mut self, kind: FailureKind, message: impl Into<String>) {
        self.finish(Ending::Failed(Failure { kind, message: message.into() }));
    }

    /// Ends the turn.
    pub fn finish(&mut self, ending: Ending) {
        self.0.push(Step::Finish(ending));
    }

    /// Whether the turn ends with one of them.
    pub(crate) fn are_finished(&self) -> bool {
        self.0.iter().any(|step| matches!(step, Step::Finish(_)))
    }

    /// Takes the collected steps.
    pub fn take(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.0)
    }
}

impl Exit {
    /// How it ended, for people: `exited with code 1: no such model`, with what standard error ends with, if anything.
    #[must_use]
    pub fn describe(&self) -> String {
        let how = match (self.code, self.signal) {
            (Some(code), _) => format!("exited with code {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => "ended".to_owned(),
        };
        match telling_line(&self.stderr) {
            Some(line) => format!("{how}: {}", crate::adapters::cut(line, 500)),
            None => how,
        }
    }
}

/// The last line; but JavaScript runtimes write their version after the error, and details of the error before it.
fn telling_line(stderr: &str) -> Option<&str> {
    let mut lines = stderr.lines().filter(|line| !line.trim().is_empty());
    let last = lines.next_back()?;
    if !is_runtime_banner(last) {
        return Some(last.trim());
    }
    let rest: Vec<&str> = lines.collect();
    // Details are indented.
    let wrong = rest.iter().rfind(|line| !line.starts_with(char::is_whitespace) && line.contains(": "));
    Some(wrong.or(rest.last()).copied().unwrap_or(last).trim())
}

/// `Bun v1.3.14 (Linux x64 baseline)`, `Node.js v22.20.0`.
fn is_runtime_banner(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_runtime = matches!(words.next(), Some("Bun" | "Node.js"));
    let version = words.next().and_then(|word| word.strip_prefix('v'));
    is_runtime && version.is_some_and(|version| version.starts_with(|letter: char| letter.is_ascii_digit()))
}
