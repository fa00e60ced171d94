//! Whether programs can be held to the permissions that are written for them. A rule that could never be about any of
//! their tools is refused: whoever has written it relies on it.

use std::sync::Arc;

use switchboard_cli_agents::adapters::{Acp, Adapter, FieldError, can_fit};

use crate::config::cli_agent::CliAgent;
use crate::config::cli_agent::cli::Cli;
use crate::config::cli_agent::generic::Approval;
use crate::config::section::Section;
use crate::config::suggestion;

/// Reads the permissions of an agent whose programs are known.
pub(super) fn read(section: &mut Section<'_, '_>, agent: &mut CliAgent) {
    let mut unwritten = Vec::new();
    section.section("permissions", |section| {
        agent.permissions.read(section);
        for FieldError { field, wrong, right } in problems(agent) {
            match section.is_set(&field) {
                true => section.refuse(&field, wrong, right),
                false => unwritten.push((field, wrong, right)),
            }
        }
    });
    for (field, wrong, right) in unwritten {
        section.refuse_all(wrong, format!("add permissions: {{ {field}: … }}; {right}"));
    }
}

fn problems(agent: &CliAgent) -> Vec<FieldError> {
    let permissions = agent.permissions.rules();
    let clis = clis(agent);
    let adapters: Vec<Arc<dyn Adapter>> = clis.iter().filter_map(|cli| cli.adapter(permissions.may_ask())).collect();
    let mut problems = Vec::new();
    for adapter in &adapters {
        problems.extend(adapter.check(&permissions).err());
    }
    // The same rules go to all programs of an agent, so that a name need be known to one of them alone.
    let mut names: Vec<&str> = adapters.iter().flat_map(|adapter| adapter.tool_names()).collect();
    names.extend(clis.iter().flat_map(|cli| names_without_adapter(*cli, agent)));
    for (key, rules) in permissions.lists() {
        let unknown = rules.iter().filter(|rule| !can_fit(rule, &names));
        // What can be told of no tool at all is refused with better words.
        let unknown = unknown.filter(|_| !problems.iter().any(|problem| problem.field == key));
        let unknown: Vec<FieldError> = unknown.map(|rule| unknown_name(key, rule, &clis, &names)).collect();
        problems.extend(unknown);
    }
    problems
}

/// All programs that an agent may start.
fn clis(agent: &CliAgent) -> Vec<Cli> {
    let Some(profiles) = &agent.profiles else { return vec![agent.cli] };
    let mut clis = Vec::new();
    for cli in profiles.all().map(|profile| profile.cli.unwrap_or(agent.cli)) {
        if !clis.contains(&cli) {
            clis.push(cli);
        }
    }
    clis
}

/// What rules can name in programs that are not known by their name.
fn names_without_adapter(cli: Cli, agent: &CliAgent) -> Vec<&'static str> {
    match (cli, &agent.approval) {
        (Cli::Acp, _) => Acp::KINDS.to_vec(),
        (Cli::Generic, Some(Approval { pattern: Some(_), .. })) if agent.adapter.is_none() => vec!["prompt"],
        (Cli::Generic, _) => vec!["*"],
        _ => Vec::new(),
    }
}

fn unknown_name(key: &str, rule: &str, clis: &[Cli], names: &[&str]) -> FieldError {
    let programs: Vec<&str> = clis.iter().map(|cli| cli.name()).collect();
    let wrong =
        format!("\"{rule}\" can be about no tool of {}, so that nothing would come of it", programs.join(" or "));
    FieldError { field: key.to_owned(), wrong, right: suggestion::did_you_mean(rule, names, "the names here are") }
}
