//! What the dialogues of declared programs share: the prompt, the messages, and what an exit without a result means.

use std::sync::Arc;

use crate::adapters::declared::prompt_input::PromptInput;
use crate::adapters::declared::rule::KINDS;
use crate::adapters::declared::section::Section;
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

/// The failure kind of one exit: many programs report a missing login or an unknown session only by exit code and
/// standard error. Of several rules the first that matches counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExitRule {
    code: Option<i32>,
    /// A part of what is on standard error.
    stderr: Option<String>,
    kind: FailureKind,
}

#[derive(Debug)]
pub(crate) struct RunState {
    pub(crate) title: String,
    pub(crate) prompt_input: PromptInput,
    pub(crate) success: Success,
    pub(crate) exits: Arc<[ExitRule]>,
    pub(crate) messages: Messages,
    pub(crate) interrupted: bool,
    pub(crate) finished: bool,
}

impl RunState {
    pub(crate) fn done(&mut self, answer: Option<String>, steps: &mut Steps) {
        self.finished = true;
        self.messages.end(steps);
        steps.done(answer.or_else(|| self.messages.answer()));
    }

    pub(crate) fn fail(&mut self, kind: FailureKind, message: impl Into<String>, steps: &mut Steps) {
        self.finished = true;
        self.messages.end(steps);
        steps.fail(kind, message);
    }

    /// Finishes the turn of a program that has exited, if nothing has before.
    pub(crate) fn ended(&mut self, exit: &Exit, steps: &mut Steps) {
        if self.finished {
            return;
        }
        let meaning = self.exits.iter().find(|rule| rule.fits(exit)).map(|rule| rule.kind);
        let title = &self.title;
        let how = format!("{title} {}", exit.describe());
        let (kind, message) = match (self.success, exit.code) {
            _ if self.interrupted => {
                let message = format!("{title} was told to stop");
                return self.fail(FailureKind::Interrupted, message, steps);
            }
            (Success::Exit, Some(0)) => return self.done(None, steps),
            (Success::Exit, Some(_)) => (FailureKind::Reported, how),
            (Success::Result, Some(0)) => (FailureKind::NoResult, format!("{how}, without saying how the turn went")),
            (Success::Result, Some(_)) | (_, None) => (FailureKind::NoResult, how),
        };
        self.fail(meaning.unwrap_or(kind), message, steps);
    }
}

impl ExitRule {
    pub(crate) fn read(section: &mut Section<'_, '_>) -> Self {
        let code = section.number("code");
        let stderr = section.text("stderr");
        let kind = section.choice("kind", KINDS);
        if section.is_mapping() && !section.has("code") && !section.has("stderr") {
            section.refuse_whole("fits every end", "write code, stderr (a part of it) or both");
        }
        section.require("kind", "write what it means, such as notLoggedIn");
        Self { code, stderr, kind: kind.unwrap_or(FailureKind::Reported) }
    }

    fn fits(&self, exit: &Exit) -> bool {
        self.code.is_none_or(|code| exit.code == Some(code))
            && self.stderr.as_ref().is_none_or(|part| exit.stderr.contains(part.as_str()))
    }
}
