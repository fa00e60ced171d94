//! Usage errors of the command line, printed in the requested output form and with a suggestion.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use switchboard_host::printer::{Output, Printer};

use crate::commands::calling::{Failure, sanitize};

/// The arguments. Help is text only, so its output flags are dropped.
pub(super) fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == "help") {
        words.retain(|word| !word.to_str().is_some_and(is_json_flag));
        let is_form = |pair: &[OsString]| (pair[0] == "-o" || pair[0] == "--output") && pair[1] == "json";
        if let Some(place) = words.windows(2).position(is_form) {
            words.drain(place..place + 2);
        }
    }
    words
}

/// The output form, read from the raw arguments because parsing has failed.
pub(super) fn typed_output() -> Output {
    let words = unicode();
    let is_output = |pair: &[String]| matches!(pair[0].as_str(), "-o" | "--output") && pair[1] == "json";
    let is_json = words.windows(2).any(is_output)
        || words.iter().any(|word| is_json_flag(word))
        || std::env::var_os("A2ACLI_OUTPUT").is_some_and(|output| output == "json");
    if is_json { Output::Json } else { Output::Text }
}

fn is_json_flag(word: &str) -> bool {
    matches!(word, "--json" | "-ojson" | "-o=json" | "--output=json")
}

pub(super) fn print(mut message: clap::Error, command: &Command) -> ExitCode {
    name_the_variable(&mut message, command);
    let tip = tip(&message);
    if typed_output() == Output::Json {
        let text = message.render().to_string();
        let text = text.trim().trim_start_matches("error: ");
        let first = text.split("\n\n").next().unwrap_or_default();
        let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
        let next = tip.unwrap_or_else(|| "--help shows what is expected".to_owned());
        return Failure::usage(first, next).print(Printer::new(Output::Json));
    }
    if let Some(tip) = tip {
        let tip = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
        message.insert(ContextKind::Suggested, tip);
        message.remove(ContextKind::SuggestedArg);
    }
    let _ = message.print();
    ExitCode::from(2)
}

/// Names the environment variable in the error if the invalid value comes from there and not from a flag.
fn name_the_variable(message: &mut clap::Error, command: &Command) {
    let Some(ContextValue::String(argument)) = message.get(ContextKind::InvalidArg) else { return };
    let Some(long) = argument.split([' ', '=']).next().and_then(|flag| flag.strip_prefix("--")) else { return };
    let is_it = |word: &String| word.strip_prefix("--").and_then(|word| word.split('=').next()) == Some(long);
    let variable = variable(command, long).filter(|name| std::env::var_os(name).is_some());
    if let Some(variable) = variable.filter(|_| !unicode().iter().any(is_it)) {
        message.insert(ContextKind::InvalidArg, ContextValue::String(variable));
    }
}

fn variable(command: &Command, long: &str) -> Option<String> {
    let named = |argument: &&Arg| argument.get_long() == Some(long) && argument.get_env().is_some();
    let here = command.get_arguments().find(named).and_then(|argument| argument.get_env());
    match here {
        Some(name) => Some(name.to_string_lossy().into_owned()),
        None => command.get_subcommands().find_map(|below| variable(below, long)),
    }
}

/// A suggestion for message text that was parsed as a flag.
fn tip(message: &clap::Error) -> Option<String> {
    let words = unicode();
    let Some(ContextValue::String(taken)) = message.get(ContextKind::InvalidArg) else { return None };
    let is_send = words.get(1).is_some_and(|word| word == "send") && message.kind() == ErrorKind::UnknownArgument;
    let text = words.iter().skip(2).find(|word| word.starts_with(taken.as_str()) && is_text(word, taken));
    let text = text.filter(|_| is_send)?;
    Some(format!(
        "text that begins with - is written after --: switchboard send AGENT -- {}",
        sanitize::shell_word(text)
    ))
}

/// Whether an argument is message text: it was quoted, or it is a run of letters after one `-`.
fn is_text(word: &str, taken: &str) -> bool {
    word.contains(char::is_whitespace) || !word.starts_with("--") && word.len() > taken.len()
}

fn unicode() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}
