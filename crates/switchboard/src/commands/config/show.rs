//! `switchboard config show`: what is in force for commands that call agents, and the source of each setting. Reads only.

use std::process::ExitCode;

use clap::{Args, Command};
use serde::Serialize;
use serde_json::json;
use switchboard_host::printer::Printer;

use crate::cli::settings::{SECRETS, Settings, Source};
use crate::cli::{CallFlags, variables};

/// Settings of single commands, which no flag of this one sets, and what is usual.
const OF_COMMANDS: [(&str, &str); 9] = [
    ("A2ACLI_OUTPUT", "text"),
    ("A2ACLI_ASYNC", "false"),
    ("A2ACLI_TASK_ID", ""),
    ("A2ACLI_CONTEXT_ID", ""),
    ("A2ACLI_METADATA", ""),
    ("A2ACLI_CLIENT_ID", ""),
    ("A2ACLI_CLIENT_SECRET", ""),
    ("A2ACLI_SCOPE", ""),
    ("A2ACLI_FLOW", ""),
];
const USUAL: &str = "default";
/// Addresses can hold a secret too, before the host or after a question mark.
const ADDRESSES: [&str; 2] = ["A2ACLI_ENDPOINT", "A2ACLI_AGENT_CARD"];
/// What is usual where a flag has no value of its own.
const USUAL_VALUES: [(&str, &str); 6] = [
    ("A2ACLI_API_KEY_HEADER", "as the card says, else X-API-Key"),
    ("A2ACLI_TRANSPORT", "the first of the agent's that is spoken here"),
    ("A2ACLI_A2A_VERSION", "the newest that both speak"),
    ("A2ACLI_TIMEOUT", "no end"),
    ("A2ACLI_POLL_INTERVAL", "500ms, up to 10s"),
    ("A2ACLI_CONFIG", "none"),
];

#[derive(Serialize)]
struct Setting {
    name: String,
    /// None if it is not set.
    value: Option<String>,
    source: String,
}

pub(crate) fn run(flags: &CallFlags, printer: Printer) -> Result<(), ExitCode> {
    let settings = Settings::load(flags.config.as_deref()).map_err(|failure| failure.print(printer))?;
    let command = CallFlags::augment_args(Command::new("call"));
    let mut shown: Vec<Setting> = variables(&command).map(|(id, name)| of_flag(id, name, flags, &settings)).collect();
    shown.extend(OF_COMMANDS.map(|(name, usual)| of_command(name, usual, &settings)));
    if printer.is_json() {
        let files: Vec<_> = settings.files.iter().map(|file| &file.path).collect();
        printer.json(&json!({ "settings": shown, "files": files }));
        return Ok(());
    }
    for Setting { name, value, source } in shown {
        printer.line(format!("{name}: {} ({source})", value.unwrap_or_else(|| "-".to_owned())));
    }
    Ok(())
}

fn of_flag(id: &str, name: &str, flags: &CallFlags, settings: &Settings) -> Setting {
    let given = flags.origins.given(id);
    let source = match settings.source(&flags.origins, id, name) {
        Source::Flag => format!("flag --{}", flag(name)),
        Source::Variable => format!("variable {name}"),
        Source::File(file) => file.path.display().to_string(),
        Source::Usual => USUAL.to_owned(),
    };
    let usual = USUAL_VALUES.iter().find(|(known, _)| *known == name && source == USUAL);
    let value = usual.map(|(_, value)| (*value).to_owned()).or_else(|| given.map(|given| given.text.clone()));
    setting(name, value, source)
}

fn of_command(name: &str, usual: &str, settings: &Settings) -> Setting {
    match settings.value(name) {
        Some((value, source)) if source == name => setting(name, Some(value), format!("variable {name}")),
        Some((value, file)) => setting(name, Some(value), file),
        None => setting(name, Some(usual.to_owned()), USUAL.to_owned()),
    }
}

fn setting(name: &str, value: Option<String>, source: String) -> Setting {
    let hidden = |value: String| match name {
        _ if SECRETS.contains(&name) => "***".to_owned(),
        _ if ADDRESSES.contains(&name) => switchboard_client::redact_url(&value),
        _ => value,
    };
    Setting { name: flag(name), value: value.filter(|value| !value.is_empty()).map(hidden), source }
}

fn flag(name: &str) -> String {
    name.trim_start_matches("A2ACLI_").to_ascii_lowercase().replace('_', "-")
}
