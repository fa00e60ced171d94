//! The dialogue with a program that speaks plain text.

use std::collections::VecDeque;

use serde_json::json;

use crate::adapters::declared::approval_pattern::ApprovalPattern;
use crate::adapters::declared::json_line::is_json;
use crate::adapters::declared::run_state::RunState;
use crate::adapters::dialogue::{Dialogue, Exit, FailureKind, Steps};
use crate::adapters::event::{Approval, Decision, Event};
use crate::adapters::plain_text::plain_line;

/// The tool name, in permission rules, of a question that names no tool.
pub(crate) const PROMPT_TOOL: &str = "prompt";

/// A program asks one question and waits. With this many open it does not wait: the pattern is wrong.
const MOST_QUESTIONS: usize = 20;

/// Questions are read by people, so they are not longer than this in bytes; longer lines are not searched.
const LONGEST_QUESTION: usize = 4_000;

/// One run of a program that speaks plain text. Each line is passed on as a terminal would show it. The program has no
/// result event, so its exit code is its result.
#[derive(Debug)]
pub(crate) struct TextLines {
    run: RunState,
    approval: Option<ApprovalPattern>,
    /// Questions without an answer. Only the first was passed to the caller: a program reads its answers in the order
    /// of its questions, so they are decided one by one.
    questions: VecDeque<Approval>,
    asked: u64,
    /// The part of the unfinished line in which questions were looked for and found. It comes again.
    seen: String,
}

impl TextLines {
    pub(crate) fn new(run: RunState, approval: Option<ApprovalPattern>) -> Self {
        Self { run, approval, questions: VecDeque::new(), asked: 0, seen: String::new() }
    }

    /// Looks for a question in what is new of a line.
    fn look(&mut self, line: &str, steps: &mut Steps) -> bool {
        let Some(approval) = &self.approval else { return false };
        let new = plain_line(line.strip_prefix(self.seen.as_str()).unwrap_or(line));
        // What a terminal would show: patterns may be tied to the beginning of a line.
        let last = new.rsplit('\n').next().unwrap_or_default();
        if last.len() > LONGEST_QUESTION || !approval.fits(last) || is_json(&plain_line(line)) {
            return false;
        }
        if self.questions.len() == MOST_QUESTIONS {
            let message = format!(
                "{} went on after {MOST_QUESTIONS} lines that fit the approval pattern: make the pattern more exact",
                self.run.title
            );
            self.run.fail(FailureKind::Reported, message, steps);
            return true;
        }
        self.asked += 1;
        self.questions.push_back(Approval {
            request: self.asked.to_string(),
            tool: PROMPT_TOOL.to_owned(),
            input: json!({}),
            prompt: last.trim().to_owned(),
            choices: Vec::new(),
            no_plain_yes: false,
            takes_reason: false,
        });
        if self.questions.len() == 1 {
            self.ask(steps);
        }
        true
    }

    /// Requests approval for the first question.
    fn ask(&self, steps: &mut Steps) {
        if let Some(question) = self.questions.front() {
            steps.event(Event::ApprovalRequired(question.clone()));
        }
    }
}

impl Dialogue for TextLines {
    fn begin(&mut self, steps: &mut Steps) {
        self.run.prompt_input.begin(steps);
    }

    fn line(&mut self, line: &str, steps: &mut Steps) {
        if self.run.finished {
            return;
        }
        let mut text = plain_line(line);
        text.push('\n');
        self.run.messages.push(text, steps);
        self.look(line, steps);
        self.seen.clear();
    }

    fn pause(&mut self, unfinished: &str, steps: &mut Steps) {
        if !self.run.finished && self.look(unfinished, steps) {
            unfinished.clone_into(&mut self.seen);
        }
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Steps) {
        let Some(approval) = &self.approval else { return };
        if self.run.finished || self.questions.front().is_none_or(|question| question.request != request) {
            return;
        }
        let answer = match decision {
            Decision::Allow => &approval.yes,
            Decision::Deny { .. } => &approval.no,
            Decision::Choose(_) => return,
        };
        steps.write(answer.as_str());
        self.questions.pop_front();
        self.ask(steps);
    }

    fn interrupt(&mut self, _: &mut Steps) {
        self.run.interrupted = true;
    }

    fn ended(&mut self, exit: &Exit, steps: &mut Steps) {
        self.run.ended(exit, steps);
    }
}
