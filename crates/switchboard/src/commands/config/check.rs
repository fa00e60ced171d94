//! `switchboard config check`: the settings in force with their sources, or all problems.

use std::process::ExitCode;

use serde_json::{Value, json};
use switchboard_host::config::problem::Mismatch;
use switchboard_host::config::{Problem, Problems};
use switchboard_host::flags::ConfigFlags;
use switchboard_host::printer::Printer;

use crate::commands::loaded;
use switchboard_fleet::config::FleetConfig;
use switchboard_fleet::config::agents::Kind;
use switchboard_fleet::programs;

/// Reads the configuration as `serve` would, with the files that agents name, and starts nothing.
pub(crate) fn run(flags: &ConfigFlags, printer: Printer) -> Result<(), ExitCode> {
    let fleet = loaded(FleetConfig::of(flags).and_then(with_agents), printer)?;
    let workspace = &fleet.workspace;
    if printer.is_json() {
        printer.json(&json!({
            "ok": true,
            "workspace": workspace.folder.display().to_string(),
            "files": workspace.files,
            "settings": workspace.settings,
            "agents": fleet.agents,
            "remotes": fleet.remotes,
            "demo": fleet.demo,
            "warnings": workspace.warnings,
            "problems": [],
        }));
    } else {
        print_text(&fleet, printer);
    }
    Ok(())
}

/// Refuses the agents that would keep a server from starting, with the same messages.
fn with_agents(fleet: FleetConfig) -> Result<FleetConfig, Problems> {
    let mut problems = Vec::new();
    for agent in &fleet.agents {
        let Kind::Cli(cli) = &agent.kind else { continue };
        let Err(refusal) = programs::workers(cli).map(|_| ()).and_then(|()| programs::skills(cli).map(|_| ())) else {
            continue;
        };
        problems.extend(refusal.each().into_iter().map(|(wrong, right)| {
            let mismatch = Mismatch::new(format!("agent {}: {wrong}", agent.name), right);
            Problem::new(agent.origin.clone(), "", mismatch)
        }));
    }
    if problems.is_empty() { Ok(fleet) } else { Err(Problems(problems)) }
}

/// Prints configuration problems, for every command that loads the configuration.
pub(crate) fn report(problems: &Problems, printer: Printer) {
    if printer.is_json() {
        printer.json(&json!({ "ok": false, "problems": problems.0 }));
        return;
    }
    let Some((last, others)) = problems.0.split_last() else { return };
    for problem in others {
        printer.error(&problem.to_string(), "");
    }
    printer.error(
        &last.to_string(),
        "fix what is named above and run switchboard config check again; switchboard config schema lists every key",
    );
}

fn print_text(fleet: &FleetConfig, printer: Printer) {
    let workspace = &fleet.workspace;
    printer.line(format!("workspace {}", workspace.folder.display()));
    match workspace.files.as_slice() {
        [] => printer.line("no configuration files, so these are the defaults"),
        files => printer.line(format!("read {}", files.join(", "))),
    }
    printer.line("");
    let settings = workspace.settings.iter();
    let rows: Vec<[String; 3]> =
        settings.map(|setting| [setting.key.clone(), shown(&setting.value), setting.origin.to_string()]).collect();
    printer.table(&rows);
    printer.line("");
    let agents = fleet.agents.iter();
    let mut rows: Vec<[String; 3]> = agents
        .map(|agent| {
            let origin = if fleet.demo { "demo fleet".to_owned() } else { agent.origin.to_string() };
            [format!("agent {}", agent.name), agent.kind.to_string(), origin]
        })
        .collect();
    let remotes = fleet.remotes.iter();
    rows.extend(remotes.map(|agent| {
        [format!("agent {}", agent.name), format!("called at {}", agent.url.as_str()), agent.origin.to_string()]
    }));
    printer.table(&rows);
    printer.line("");
    for warning in &workspace.warnings {
        printer.warning(warning);
    }
    printer.line(match workspace.warnings.len() {
        0 => "the configuration is good".to_owned(),
        1 => "the configuration can be used, but for what is warned of".to_owned(),
        count => format!("the configuration can be used, but for {count} things that are warned of"),
    });
}

/// A value as it would stand in the file.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}
