//! The meaning of an exit without a result: many programs report a missing login or an unknown session only by exit
//! code and standard error.

use std::sync::Arc;

use crate::adapters::declared::rule::KINDS;
use crate::adapters::declared::section::Section;
use crate::adapters::dialogue::{Dialogue, Ending, Exit, FailureKind, Step, Steps};
use crate::adapters::event::Decision;

/// The failure kind of one exit. Of several rules the first that matches counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExitRule {
    code: Option<i32>,
    /// A part of what is on standard error.
    stderr: Option<String>,
    kind: FailureKind,
}

impl ExitRule {
    pub(crate) fn read(section: &mut Section<'_, '_>) -> Self {
        let code = section.number("code");
        let stderr = section.text("stderr");
        let kind = section.choice("kind", KINDS);
        if section.is_mapping() && !section.has("code") && !section.has("stderr") {
            section.refuse_whole("fits every end", "write code, stderr (a part of it) or both");
        }
        if section.is_mapping() && !section.has("kind") {
            section.refuse("kind", "is missing", "write what it means, such as notLoggedIn");
        }
        Self { code, stderr, kind: kind.unwrap_or(FailureKind::Reported) }
    }

    fn fits(&self, exit: &Exit) -> bool {
        self.code.is_none_or(|code| exit.code == Some(code))
            && self.stderr.as_ref().is_none_or(|part| exit.stderr.contains(part.as_str()))
    }
}

/// A dialogue whose failure at exit is classified by exit rules.
pub(crate) struct ExitRuleDialogue {
    pub(crate) inner: Box<dyn Dialogue>,
    pub(crate) rules: Arc<[ExitRule]>,
}

impl Dialogue for ExitRuleDialogue {
    fn begin(&mut self, steps: &mut Steps) {
        self.inner.begin(steps);
    }

    fn line(&mut self, line: &str, steps: &mut Steps) {
        self.inner.line(line, steps);
    }

    fn pause(&mut self, unfinished: &str, steps: &mut Steps) {
        self.inner.pause(unfinished, steps);
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Steps) {
        self.inner.decide(request, decision, steps);
    }

    fn interrupt(&mut self, steps: &mut Steps) {
        self.inner.interrupt(steps);
    }

    fn ended(&mut self, exit: &Exit, steps: &mut Steps) {
        let mut ended = Steps::default();
        self.inner.ended(exit, &mut ended);
        let meaning = self.rules.iter().find(|rule| rule.fits(exit)).map(|rule| rule.kind);
        for step in ended.take() {
            match (step, meaning) {
                (Step::Finish(Ending::Failed(failure)), Some(kind)) if failure.kind != FailureKind::Interrupted => {
                    steps.fail(kind, failure.message);
                }
                (Step::Finish(Ending::Failed(failure)), _) => steps.fail(failure.kind, failure.message),
                (Step::Finish(Ending::Done { answer }), _) => steps.done(answer),
                (Step::Event(event), _) => steps.event(event),
                (Step::Write(line), _) => steps.write(line),
                (Step::CloseInput, _) => steps.close_input(),
            }
        }
    }
}
