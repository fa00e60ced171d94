//! Which keys are valid for which kind of program. A key without effect is refused, because the operator who wrote it
//! relies on it.

use switchboard_cli_agents::adapters::FieldError;
use switchboard_host::config::section::Section;

use crate::config::cli_agent::CliAgent;
use crate::config::cli_agent::cli::Cli;
use crate::config::cli_agent::generic::{Approval, Input, Output};
use crate::config::cli_agent::permissions::{Permission, Permissions};

/// Refuses what does not fit, and says what is missing.
pub(super) fn check(section: &mut Section<'_, '_>, agent: &CliAgent) {
    match agent.cli {
        Cli::Acp => acp(section),
        Cli::Generic => generic(section, agent),
        known => {
            let right = "use program or args";
            refuse_each(section, &["command"], format!("{known} knows its own command"), right);
            only_generic(section, known);
        }
    }
    if section.is_set("command") && !agent.cli.is_known() {
        refuse_each(section, &["program"], "command names the program already", "remove one of the two");
        refuse_each(section, &["args"], "command holds the arguments already", "put them into command");
    }
}

impl CliAgent {
    /// Whether the program gets nothing but the prompt, so that a request cannot choose its model.
    pub(super) fn takes_only_prompt(&self) -> bool {
        self.cli == Cli::Generic && self.adapter.is_none()
    }
}

fn acp(section: &mut Section<'_, '_>) {
    if !section.is_set("command") {
        let right = "add command: with the program and its arguments, such as [my-agent, --acp]";
        section.refuse_all("acp needs a command", right);
    }
    only_generic(section, Cli::Acp);
}

fn only_generic(section: &mut Section<'_, '_>, cli: Cli) {
    let wrong = format!("it is known how {cli} talks");
    refuse_each(
        section,
        &["adapter", "input", "separator", "output", "approval"],
        wrong,
        "remove it, or write cli: generic",
    );
}

fn generic(section: &mut Section<'_, '_>, agent: &CliAgent) {
    if section.is_set("adapter") {
        let keys = ["command", "input", "separator", "output", "approval"];
        refuse_each(section, &keys, "the adapter file says that already", "remove one of the two");
        return;
    }
    if !section.is_set("command") {
        let right =
            "add command: with the program and its arguments, such as [./lint.sh, --json], or adapter: with a file";
        section.refuse_all("generic needs a command or an adapter", right);
        return;
    }
    if let Some(command) = &agent.command {
        let program = command.program.to_string_lossy().into_owned();
        let words: Vec<String> = std::iter::once(program).chain(command.args.iter().map(str::to_owned)).collect();
        let input = match agent.input {
            Input::Stdin => switchboard_cli_agents::adapters::Input::Stdin,
            Input::Argument => switchboard_cli_agents::adapters::Input::Argument,
        };
        if let Err(FieldError { wrong, right, .. }) = switchboard_cli_agents::adapters::check_command(&words, input) {
            section.refuse("command", wrong, right);
        }
    }
    check_limits(section, agent, &agent.permissions);
    match (&agent.approval, agent.output) {
        (Some(Approval { events: false, .. }), Output::Jsonl) => {
            let wrong = "a program that writes jsonl asks with a line of its own";
            section.refuse("approval", wrong, "write { events: true }, or output: text");
        }
        (Some(Approval { events: true, .. }), Output::Text) => {
            let wrong = "a program that writes text has no events";
            section.refuse("approval", wrong, "write the pattern of its questions, or output: jsonl");
        }
        _ => {}
    }
    if agent.input == Input::Stdin {
        let wrong = "the prompt is no argument, so that nothing stands before it";
        refuse_each(section, &["separator"], wrong, "remove it, or write input: argument");
    }
    let wrong = "a generic command is told nothing but the prompt";
    let right = "put it into command, or describe the program in an adapter file";
    refuse_each(section, &["model", "models", "effort", "efforts"], wrong, right);
}

/// Refuses those of the keys that are set.
fn refuse_each(section: &mut Section<'_, '_>, keys: &[&str], wrong: impl Into<String>, right: &str) {
    let wrong = wrong.into();
    for key in keys {
        if section.is_set(key) {
            section.refuse(key, wrong.clone(), right);
        }
    }
}

/// Refuses permissions that would not hold back a program that never asks.
pub(super) fn check_limits(section: &mut Section<'_, '_>, agent: &CliAgent, permissions: &Permissions) {
    let never_asks = agent.cli == Cli::Generic && agent.adapter.is_none() && agent.approval.is_none();
    let is_limited = permissions.default == Permission::Deny || permissions.rules().has_rules();
    if !never_asks || !is_limited {
        return;
    }
    let (wrong, right) = match agent.output {
        Output::Text => (
            "a program that only writes text never asks, so that nothing holds it back",
            "add approval: with the pattern of its questions, or remove it",
        ),
        Output::Jsonl => (
            "a program without approval never asks, so that nothing holds it back",
            "add approval: { events: true } if it asks with an event, or remove it",
        ),
    };
    section.refuse("permissions", wrong, right);
}
