//! Any program as an agent: a script, a linter, a small self-written agent. It is the built-in declaration
//! `generic.yaml`, with the program and its arguments from the agent's own keys.
//!
//! The prompt is written to the program or is its last argument. What it writes is text for the caller, or events of
//! this crate as JSON lines, in the spelling in which [`Event`](crate::adapters::Event) is written as JSON. Written to
//! a program that asks with events are `{"kind":"prompt","text":…}` if the prompt is no argument, then
//! `{"kind":"approval","request":"r1","decision":"allow"}` or `"decision":"deny"`, perhaps with a `"reason"`, or
//! `"decision":"choose"` with a `"choice"` that it has offered, and `{"kind":"interrupt"}` if it is to stop.

use std::path::Path;

use crate::adapters::declared::arguments::Arguments;
use crate::adapters::declared::mode::Modes;
use crate::adapters::declared::run_flags::run_prompt;
use crate::adapters::declared::run_state::Success;
use crate::adapters::declared::{Declared, Output, Turn};
use crate::adapters::field_error::FieldError;

/// The name of the built-in declaration.
pub(super) const NAME: &str = "generic";

/// How a program is used.
#[derive(Clone, Debug, Default)]
pub struct GenericOptions {
    /// The program and its arguments. No shell reads them.
    pub command: Vec<String>,
    /// How it gets the prompt.
    pub input: Input,
    /// What it writes, and how it asks.
    pub output: Output,
}

/// How a program gets the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// On its standard input, which is closed then. If the program may ask, its input stays open: then the prompt is
    /// one line, or one JSON line of a program that asks with events.
    #[default]
    Stdin,
    /// As its last argument, behind `--`, so that no prompt can be taken for an option. It is not doubled if the command
    /// ends in it.
    Argument,
    /// As its last argument, for programs that do not know `--`. Prompts that begin with a dash are refused.
    BareArgument,
}

impl Declared {
    /// An agent that is this program.
    pub fn generic(options: GenericOptions) -> Result<Self, FieldError> {
        const COMMAND: &str = r#"write the program and its arguments, such as ["./lint.sh", "--json"]"#;
        let program = options.command.first().filter(|program| !program.is_empty());
        let program = program.ok_or_else(|| FieldError::new("command", "names no program", COMMAND))?.clone();
        if options.command.iter().any(|argument| argument.contains('\0')) {
            return Err(FieldError::new("command", "holds a zero character", COMMAND));
        }
        check_command(&options.command, options.input)?;
        let built_in = Self::parse(include_str!("generic.yaml"), "generic.yaml");
        let mut declared = built_in.map_err(|mut error| error.problems.swap_remove(0))?;
        let about = &mut declared.about;
        let file_name = Path::new(&program).file_name();
        about.title = file_name.map_or_else(|| program.clone(), |name| name.to_string_lossy().into_owned());
        about.binary.install = format!("put {program} where the server can run it");
        about.binary.names = vec![program];
        about.capabilities.approvals = options.output.asks();
        if !options.output.asks() {
            declared.modes = Modes::of_unasking();
        }
        if matches!(options.output, Output::Text { .. }) {
            declared.success = Success::Exit;
        }
        let arguments = options.command.get(1..).unwrap_or_default();
        declared.start = Turn {
            arguments: match options.input {
                Input::Stdin => Arguments::fixed(arguments),
                Input::Argument => Arguments::before_prompt(arguments, true),
                Input::BareArgument => Arguments::before_prompt(arguments, false),
            },
            prompt_is_input: options.input == Input::Stdin,
        };
        declared.output = options.output;
        Ok(declared)
    }
}

/// Refuses a command that would run the prompt as code.
pub fn check_command(command: &[String], input: Input) -> Result<(), FieldError> {
    match command.split_first() {
        Some((program, words)) if input != Input::Stdin && run_prompt(program, words, "") => {
            Err(runs_prompt("command"))
        }
        _ => Ok(()),
    }
}

/// Refuses a setting with which the prompt would be run as code.
pub(super) fn runs_prompt(field: &str) -> FieldError {
    let right = "name the script that is run, which gets the prompt";
    FieldError::new(field, "would let the program run what a caller writes", right)
}
