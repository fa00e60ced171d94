//! Any program as an agent: a script, a linter, a small self-written agent.
//!
//! The prompt is written to the program or is its last argument. What it writes is text for the caller, or events of
//! this crate as JSON lines, in the spelling in which [`Event`](crate::adapters::Event) is written as JSON:
//!
//! ```json
//! {"kind":"text","text":"Looking at three files."}
//! {"kind":"tool_use","id":"1","tool":"lint","input":{"path":"src"}}
//! {"kind":"tool_result","id":"1","output":"2 warnings","is_error":false}
//! {"kind":"approval_required","request":"r1","tool":"fix","input":{},"prompt":"Fix 2 warnings"}
//! {"kind":"usage","input_tokens":900,"output_tokens":120}
//! {"kind":"done","answer":"Fixed."}
//! ```
//!
//! A turn that failed ends with `{"kind":"error","message":"no such folder"}`, with `"failure"` as `refused`,
//! `not_logged_in`, `unknown_session`, `limit` or `interrupted` where one of these fits. Written to the program are
//! `{"kind":"prompt","text":…}` if the prompt is no argument, then
//! `{"kind":"approval","request":"r1","decision":"allow"}` or `"decision":"deny"`, perhaps with a `"reason"`, or
//! `"decision":"choose"` with a `"choice"` that it has offered, and `{"kind":"interrupt"}` if it is to stop.

mod approval_pattern;
mod event_line;
mod event_lines;
pub(crate) mod exit_result;
pub(crate) mod json_line;
pub(crate) mod open_calls;
pub(crate) mod prompt_input;
pub(crate) mod text_lines;

use std::path::Path;

pub use approval_pattern::ApprovalPattern;

use crate::adapters::adapter::{About, Adapter, Binary, Capabilities};
use crate::adapters::dialogue::Dialogue;
use crate::adapters::field_error::FieldError;
use crate::adapters::interpreter::{Interpreter, PromptPosition};
use crate::adapters::order::{Launch, Order, OrderError, Session};
use crate::adapters::permissions::Permission;
use event_lines::EventLines;
use prompt_input::PromptInput;
use text_lines::TextLines;

/// Any program.
#[derive(Clone, Debug)]
pub struct Generic {
    about: About,
    options: GenericOptions,
}

/// How a program is used.
#[derive(Clone, Debug, Default)]
pub struct GenericOptions {
    /// The program and its arguments. No shell reads them.
    pub command: Vec<String>,
    /// How it gets the prompt.
    pub input: Input,
    /// What stands before a prompt that is an argument.
    pub separator: Separator,
    /// What it writes.
    pub output: Output,
    /// How it asks.
    pub approvals: Approvals,
}

/// How a program gets the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// On its standard input, which is closed then. If the program may ask, its input stays open: then the prompt is
    /// one line, and with [`Approvals::Events`] one JSON line.
    #[default]
    Stdin,
    /// As its last argument.
    Argument,
}

/// What stands before a prompt that is an argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Separator {
    /// `--`, so that no prompt can be taken for an option. It is not doubled if the command ends in it.
    #[default]
    Dashes,
    /// Nothing, for programs that do not know `--`. Prompts that begin with a dash are refused.
    Nothing,
}

/// What a program writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Text for the caller. Such a program has no result event, so its exit code is its result.
    #[default]
    Text,
    /// Events as JSON lines. Only `done` makes the turn good; ending with code 0 does not.
    Jsonl,
}

/// How a program asks whether it may do something.
#[derive(Clone, Debug, Default)]
pub enum Approvals {
    /// It does not.
    #[default]
    Never,
    /// In text that fits a pattern; needs [`Output::Text`]. Lines that are JSON are never taken for questions.
    Pattern(ApprovalPattern),
    /// With `approval_required` events; needs [`Output::Jsonl`].
    Events,
}

impl Generic {
    /// An agent that is this program.
    ///
    /// # Errors
    /// If the options do not fit together; the first that does not.
    pub fn new(options: GenericOptions) -> Result<Self, FieldError> {
        const COMMAND: &str = r#"write the program and its arguments, such as ["./lint.sh", "--json"]"#;
        let program = options.command.first().filter(|program| !program.is_empty());
        let program = program.ok_or_else(|| FieldError::new("command", "names no program", COMMAND))?.clone();
        if options.command.iter().any(|argument| argument.contains('\0')) {
            return Err(FieldError::new("command", "holds a zero character", COMMAND));
        }
        check_command(&options.command, options.input)?;
        match (&options.approvals, options.output) {
            (Approvals::Pattern(_), Output::Jsonl) => {
                let wrong = "is a pattern, and the output is jsonl";
                return Err(FieldError::new("approvals", wrong, "write events, or set output to text"));
            }
            (Approvals::Events, Output::Text) => {
                let wrong = "is events, and the output is text";
                return Err(FieldError::new("approvals", wrong, "write a pattern, or set output to jsonl"));
            }
            _ => {}
        }
        Ok(Self { about: about(program, options.may_ask()), options })
    }

    /// Refuses options that a plain program has no input for.
    fn check(&self, order: &Order) -> Result<(), OrderError> {
        let permissions = &order.permissions;
        let limited = permissions.default == Permission::Deny || permissions.has_rules();
        let reason = if matches!(order.session, Session::Resume(_)) {
            "this program cannot take up a conversation again: begin a new one"
        } else if order.model.is_some() {
            "this program is not told of a model: remove model, or write it into command"
        } else if order.effort.is_some() {
            "this program is not told of an effort: remove effort, or write it into command"
        } else if limited && !self.options.may_ask() {
            "this program never asks, so permissions cannot hold it back: remove permissions, or set approval"
        } else {
            return Ok(());
        };
        Err(OrderError::Unsupported(reason.to_owned()))
    }

    /// The arguments for a turn.
    fn arguments(&self, order: &Order) -> Result<Vec<String>, OrderError> {
        let mut args: Vec<String> = self.options.command.iter().skip(1).chain(&order.args).cloned().collect();
        if self.options.input == Input::Argument {
            let prompt = order.prompt_argument()?;
            let separated = args.last().is_some_and(|last| last == "--");
            match self.options.separator {
                _ if separated => {}
                Separator::Dashes => args.push("--".to_owned()),
                Separator::Nothing if prompt.starts_with('-') => {
                    let reason = "the message begins with a dash, which this agent could take for an option: \
                                  begin with a word";
                    return Err(OrderError::Unsupported(reason.to_owned()));
                }
                Separator::Nothing => {}
            }
            args.push(prompt);
        }
        Ok(args)
    }

    fn prompt_input(&self, order: &Order) -> Result<PromptInput, OrderError> {
        match (self.options.input, &self.options.approvals) {
            (Input::Argument, approvals) => Ok(PromptInput::empty(!matches!(approvals, Approvals::Never))),
            (Input::Stdin, Approvals::Never) => Ok(PromptInput::whole(order)),
            (Input::Stdin, Approvals::Pattern(_)) => PromptInput::line(order),
            (Input::Stdin, Approvals::Events) => Ok(PromptInput::json_line(order)),
        }
    }
}

/// Refuses a command that would take the prompt for code.
///
/// # Errors
/// What is wrong with `command`.
pub fn check_command(command: &[String], input: Input) -> Result<(), FieldError> {
    let mut words = command.iter();
    let mut interpreter = Interpreter::of(words.next().map_or("", String::as_str));
    words.for_each(|word| interpreter.word(word));
    if interpreter.runs(if input == Input::Stdin { PromptPosition::Stdin } else { PromptPosition::Positional }, "") {
        let wrong = "would let the program run what a caller writes";
        return Err(FieldError::new("command", wrong, "name the script that is run, which gets the prompt"));
    }
    Ok(())
}

impl GenericOptions {
    fn may_ask(&self) -> bool {
        !matches!(self.approvals, Approvals::Never)
    }
}

impl Adapter for Generic {
    fn about(&self) -> &About {
        &self.about
    }

    fn tool_names(&self) -> Vec<&str> {
        match self.options.approvals {
            Approvals::Pattern(_) => vec![text_lines::PROMPT_TOOL],
            Approvals::Never | Approvals::Events => vec!["*"],
        }
    }

    fn command_tools(&self) -> Vec<&str> {
        if matches!(self.options.approvals, Approvals::Events) { vec!["*"] } else { Vec::new() }
    }

    fn start(&self, order: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError> {
        order.require_prompt()?;
        self.check(order)?;
        let prompt_input = self.prompt_input(order)?;
        let launch = Launch { args: self.arguments(order)?, env: Vec::new(), input: prompt_input.input() };
        let title = self.about.title.clone();
        let dialogue: Box<dyn Dialogue> = match (self.options.output, &self.options.approvals) {
            (Output::Jsonl, approvals) => {
                Box::new(EventLines::new(title, prompt_input, matches!(approvals, Approvals::Events)))
            }
            (Output::Text, Approvals::Pattern(pattern)) => {
                Box::new(TextLines::new(title, prompt_input, Some(pattern.clone())))
            }
            (Output::Text, _) => Box::new(TextLines::new(title, prompt_input, None)),
        };
        Ok((launch, dialogue))
    }
}

fn about(program: String, approvals: bool) -> About {
    let file_name = Path::new(&program).file_name();
    let title = file_name.map_or_else(|| program.clone(), |name| name.to_string_lossy().into_owned());
    About {
        name: "generic".to_owned(),
        title,
        binary: Binary {
            install: format!("put {program} where the server can run it"),
            names: vec![program],
            version_args: Vec::new(),
            tested: Vec::new(),
            login: "log in as the program asks you to".to_owned(),
            login_signs: Vec::new(),
            refuses_root: false,
        },
        capabilities: Capabilities { approvals, resume: false, chosen_session: false },
        variables: Vec::new(),
    }
}
