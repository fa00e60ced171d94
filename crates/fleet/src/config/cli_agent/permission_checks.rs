//! Whether programs can be held to the permissions that are written for them. A rule that could never be about any of
//! their tools is refused, because the operator who wrote it relies on it.

use std::sync::Arc;

use switchboard_cli_agents::adapters::{Acp, Adapter, CommandRule, FieldError, can_fit};
use switchboard_host::config::section::Section;
use switchboard_host::config::suggestion;

use crate::config::cli_agent::cli::Cli;
use crate::config::cli_agent::generic::Approval;
use crate::config::cli_agent::permissions::{Permissions, SkillPermissions};
use crate::config::cli_agent::{CliAgent, key_checks};

/// Reads the permissions of an agent whose programs are known.
pub(super) fn read(section: &mut Section<'_, '_>, agent: &mut CliAgent) {
    read_with(section, |section| {
        agent.permissions.read(section);
        problems(agent, &agent.permissions)
    });
}

/// Reads the permissions of one of its skills.
pub(crate) fn read_skill(section: &mut Section<'_, '_>, agent: &CliAgent) -> (SkillPermissions, Permissions) {
    let mut own = SkillPermissions::default();
    let mut permissions = agent.permissions.clone();
    read_with(section, |section| {
        permissions = own.read(section, &agent.permissions);
        problems(agent, &permissions)
    });
    key_checks::check_limits(section, agent, &permissions);
    (own, permissions)
}

fn read_with(section: &mut Section<'_, '_>, read: impl FnOnce(&mut Section<'_, '_>) -> Vec<FieldError>) {
    let mut unwritten = Vec::new();
    section.section("permissions", |section| {
        for FieldError { field, wrong, right } in read(section) {
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

fn problems(agent: &CliAgent, permissions: &Permissions) -> Vec<FieldError> {
    let permissions = permissions.rules();
    let clis = clis(agent);
    let adapters: Vec<Arc<dyn Adapter>> = clis.iter().filter_map(|cli| cli.adapter(permissions.may_ask())).collect();
    let mut problems = Vec::new();
    for adapter in &adapters {
        problems.extend(adapter.check(&permissions).err());
    }
    // The same rules go to all programs of an agent, so that a name need be known to one of them alone.
    let mut names: Vec<&str> = adapters.iter().flat_map(|adapter| adapter.tool_names()).collect();
    names.extend(clis.iter().flat_map(|cli| names_without_adapter(*cli, agent).0));
    for (key, rules) in permissions.lists() {
        let unknown = rules.iter().filter(|rule| !can_fit(rule, &names));
        // The adapter has refused the whole list already, with a more precise message.
        let unknown = unknown.filter(|_| !problems.iter().any(|problem| problem.field == key));
        let unknown: Vec<FieldError> = unknown.map(|rule| unknown_name(key, rule, &clis, &names)).collect();
        problems.extend(unknown);
    }
    let mut reporting: Vec<&str> = adapters.iter().flat_map(|adapter| adapter.command_tools()).collect();
    reporting.extend(clis.iter().flat_map(|cli| names_without_adapter(*cli, agent).1));
    let unreported = permissions.allow_commands.iter().filter(|rule| !can_fit(&rule.tool, &reporting));
    problems.extend(unreported.map(|rule| unreported_command(rule, &clis, &reporting)));
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

/// What rules can name in programs that are not known by their name, and the tools of which they report commands.
fn names_without_adapter(cli: Cli, agent: &CliAgent) -> (&'static [&'static str], &'static [&'static str]) {
    match (cli, &agent.approval) {
        (Cli::Acp, _) => (&Acp::KINDS, &["execute"]),
        (Cli::Generic, Some(Approval { pattern: Some(_), .. })) if agent.adapter.is_none() => (&["prompt"], &[]),
        (Cli::Generic, Some(Approval { pattern: None, .. })) if agent.adapter.is_none() => (&["*"], &["*"]),
        (Cli::Generic, _) => (&["*"], &[]),
        _ => (&[], &[]),
    }
}

fn unreported_command(rule: &CommandRule, clis: &[Cli], reporting: &[&str]) -> FieldError {
    let programs: Vec<&str> = clis.iter().map(|cli| cli.name()).collect();
    let programs = programs.join(" or ");
    let wrong =
        format!("\"{}({})\" has a pattern, and {programs} does not report such a command", rule.tool, rule.pattern);
    let right = match reporting.is_empty() {
        true => "name the tool alone".to_owned(),
        false => format!("patterns are for {}; name other tools alone", reporting.join(", ")),
    };
    FieldError { field: "allow".to_owned(), wrong, right }
}

fn unknown_name(key: &str, rule: &str, clis: &[Cli], names: &[&str]) -> FieldError {
    let programs: Vec<&str> = clis.iter().map(|cli| cli.name()).collect();
    let wrong =
        format!("\"{rule}\" can be about no tool of {}, so that nothing would come of it", programs.join(" or "));
    FieldError { field: key.to_owned(), wrong, right: suggestion::did_you_mean(rule, names, "the names here are") }
}
