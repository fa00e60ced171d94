//! A program that is described in a file, so that a new one needs no new release. `docs/cli-agents/programs.md` has the
//! keys and examples; any other program is the built-in declaration `generic.yaml`.
//!
//! Values of a turn are filled into arguments that no shell reads, and a prompt must stand where it cannot be taken for
//! an option. Rules map the JSON lines of a program to events: the first that fits a line counts. What is wrong with a
//! file is collected while it is read, so that its author learns all of it at once.

mod approval_pattern;
mod arguments;
mod condition;
mod document;
mod error;
mod generic;
mod json_line;
mod mode;
mod open_calls;
mod path;
mod placeholder;
mod prompt_input;
mod questions;
mod rule;
mod rule_dialogue;
mod run_flags;
mod run_state;
mod section;
mod text_lines;

use std::path::Path;
use std::sync::Arc;

pub use approval_pattern::ApprovalPattern;
pub use error::DeclaredError;
pub use generic::{GenericOptions, Input, check_command};

use crate::adapters::adapter::{About, Adapter, TurnOptions};
use crate::adapters::dialogue::Dialogue;
use crate::adapters::field_error::FieldError;
use crate::adapters::messages::Messages;
use crate::adapters::order::{Launch, Order, OrderError, Session};
use crate::adapters::permissions::Permissions;
use arguments::Arguments;
use generic::runs_prompt;
use mode::Modes;
use open_calls::OpenCalls;
use placeholder::Placeholder;
use prompt_input::PromptInput;
use questions::Questions;
use rule::Rule;
use rule_dialogue::RuleDialogue;
use run_state::{ExitRule, RunState, Success};
use text_lines::{PROMPT_TOOL, TextLines};

/// A program that a file describes.
#[derive(Clone, Debug)]
pub struct Declared {
    about: About,
    env: Vec<(String, String)>,
    start: Turn,
    resume: Option<Turn>,
    output: Output,
    rules: Arc<[Rule]>,
    success: Success,
    exits: Arc<[ExitRule]>,
    modes: Modes,
}

/// What a program writes, and how it asks.
#[derive(Clone, Debug)]
pub enum Output {
    /// Text for the caller. Such a program has no result event, so its exit code is its result.
    Text {
        /// How its questions look, if it asks. Lines that are JSON are never taken for questions.
        questions: Option<ApprovalPattern>,
    },
    /// Events as JSON lines. Only `done` makes the turn good; ending with code 0 does not.
    Jsonl {
        /// Whether it asks with events, and reads its prompt and the answers as JSON lines.
        asks: bool,
    },
}

impl Default for Output {
    fn default() -> Self {
        Self::Text { questions: None }
    }
}

impl Output {
    fn asks(&self) -> bool {
        matches!(self, Self::Text { questions: Some(_) } | Self::Jsonl { asks: true })
    }
}

/// How it is started for a turn.
#[derive(Clone, Debug, Default)]
struct Turn {
    arguments: Arguments,
    prompt_is_input: bool,
}

impl Turn {
    fn options(&self) -> TurnOptions {
        let has = |placeholder| self.arguments.uses(placeholder) > 0;
        TurnOptions { model: has(Placeholder::Model), effort: has(Placeholder::Effort) }
    }
}

impl Declared {
    /// Reads a declaration in YAML. `file_name` is what errors call it.
    ///
    /// # Errors
    /// If it is no YAML, or a key is unknown, missing or does not fit: all such problems at once.
    pub fn parse(yaml: &str, file_name: &str) -> Result<Self, DeclaredError> {
        document::parse(yaml, file_name)
    }

    /// Refuses an option that the program has no argument for. A session keeps the options it was started with, so
    /// `resume` need not repeat them.
    fn check(&self, turn: &Turn, order: &Order) -> Result<(), OrderError> {
        let options = [(order.model.is_some(), Placeholder::Model), (order.effort.is_some(), Placeholder::Effort)];
        for (is_set, placeholder) in options {
            if is_set && turn.arguments.uses(placeholder) == 0 && self.start.arguments.uses(placeholder) == 0 {
                let (title, word) = (&self.about.title, placeholder.word());
                return Err(OrderError::Unsupported(format!("{title} has no argument for {word}: remove {word}")));
            }
        }
        Ok(())
    }
}

impl Adapter for Declared {
    fn about(&self) -> &About {
        &self.about
    }

    fn tool_names(&self) -> Vec<&str> {
        match self.output {
            Output::Text { questions: Some(_) } => vec![PROMPT_TOOL],
            _ => vec!["*"],
        }
    }

    fn command_tools(&self) -> Vec<&str> {
        if matches!(self.output, Output::Jsonl { asks: true }) { vec!["*"] } else { Vec::new() }
    }

    fn told(&self) -> TurnOptions {
        self.start.options()
    }

    fn retold(&self) -> TurnOptions {
        self.resume.as_ref().unwrap_or(&self.start).options()
    }

    fn check(&self, permissions: &Permissions) -> Result<(), FieldError> {
        self.modes.of(permissions, &self.about.title).map(|_| ())
    }

    fn check_args(&self, program: Option<&Path>, permissions: &Permissions, args: &[String]) -> Result<(), FieldError> {
        let mode = self.modes.of(permissions, &self.about.title).map_err(|error| error.within("permissions"))?;
        let added = [mode.args.as_slice(), args].concat();
        let program = program.map(|program| vec![program.to_string_lossy().into_owned()]);
        let programs = program.as_ref().unwrap_or(&self.about.binary.names);
        let is_run = |turn: &Turn| turn.arguments.run_prompt(programs, &added);
        if is_run(&self.start) || self.resume.as_ref().is_some_and(is_run) { Err(runs_prompt("args")) } else { Ok(()) }
    }

    fn start(&self, order: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError> {
        order.require_prompt()?;
        let title = self.about.title.clone();
        let turn = match (&order.session, &self.resume) {
            (Session::New(_), _) => &self.start,
            (Session::Resume(_), Some(resume)) => resume,
            (Session::Resume(_), None) => {
                let reason = format!("{title} cannot take up a conversation again: begin a new one");
                return Err(OrderError::Unsupported(reason));
            }
        };
        self.check(turn, order)?;
        let mode = self.modes.of(&order.permissions, &title)?;
        let checked = self.check_args(None, &order.permissions, &order.args);
        checked.map_err(|error| OrderError::Unsupported(error.to_string()))?;
        let added = [mode.args.as_slice(), order.args.as_slice()].concat();
        let prompt_input = PromptInput::new(turn.prompt_is_input, &self.output, order)?;
        let launch = Launch {
            args: turn.arguments.fill(order, &added)?,
            env: [self.env.as_slice(), mode.env.as_slice()].concat(),
            input: prompt_input.input(),
        };
        let run = RunState {
            title,
            prompt_input,
            success: self.success,
            exits: Arc::clone(&self.exits),
            messages: Messages::default(),
            interrupted: false,
            finished: false,
        };
        let dialogue: Box<dyn Dialogue> = match &self.output {
            Output::Text { questions } => Box::new(TextLines::new(run, questions.clone())),
            Output::Jsonl { asks } => {
                let (rules, asks) = (Arc::clone(&self.rules), *asks);
                let (questions, calls) = (Questions::default(), OpenCalls::default());
                let approvals_key = if self.about.name == generic::NAME { "approval" } else { "approvals" };
                Box::new(RuleDialogue { run, rules, asks, approvals_key, questions, calls })
            }
        };
        Ok((launch, dialogue))
    }
}
