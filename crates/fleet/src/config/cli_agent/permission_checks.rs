//! Whether programs can be held to the permissions that are written for them. A rule that could never be about any of
//! their tools is refused, because the operator who wrote it relies on it.

use switchboard_cli_agents::adapters::{Adapter, CommandRule, FieldError, Permissions as Rules, can_fit};
use switchboard_host::config::section::Section;
use switchboard_host::config::suggestion;

use crate::config::cli_agent::cli::Cli;
use crate::config::cli_agent::permissions::{Permissions, SkillPermissions};
use crate::config::cli_agent::{CliAgent, key_checks};
use crate::programs;

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
    let known = clis.iter().filter_map(|cli| cli.adapter(permissions.may_ask()));
    let mut problems: Vec<FieldError> = known.filter_map(|adapter| adapter.check(&permissions).err()).collect();
    if agent.adapter.is_some() && clis.contains(&Cli::Generic) {
        // What a described program asks about is known once its file was read.
        return problems;
    }
    let adapters = clis.iter().map(|cli| programs::adapter(agent, *cli, permissions.may_ask()));
    // A command or an approval that cannot be used is reported by itself.
    let Ok(adapters) = adapters.collect::<Result<Vec<_>, _>>() else { return problems };
    let targets = RuleTargets::of(adapters.iter().map(|adapter| &**adapter));
    // The adapter has refused some lists already, with a more precise message.
    let refused: Vec<String> = problems.iter().map(|problem| problem.field.clone()).collect();
    problems.extend(targets.unknown_names(&permissions).filter(|problem| !refused.contains(&problem.field)));
    problems.extend(targets.unreported_commands(&permissions));
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

/// What the rules of an agent can be about. The same rules go to all of its programs, so that a name need be known to one
/// of them alone.
pub(crate) struct RuleTargets<'a> {
    /// The names of the programs, for a sentence.
    programs: String,
    names: Vec<&'a str>,
    /// Those of the names whose commands are reported before they are run.
    reporting: Vec<&'a str>,
}

impl<'a> RuleTargets<'a> {
    pub(crate) fn of(adapters: impl Iterator<Item = &'a dyn Adapter>) -> Self {
        let (mut programs, mut names, mut reporting) = (Vec::new(), Vec::new(), Vec::new());
        for adapter in adapters {
            let program = adapter.about().name.as_str();
            if !programs.contains(&program) {
                programs.push(program);
                names.extend(adapter.tool_names());
                reporting.extend(adapter.command_tools());
            }
        }
        Self { programs: programs.join(" or "), names, reporting }
    }

    /// Rules that can be about no tool of any program.
    pub(crate) fn unknown_names(&self, permissions: &Rules) -> impl Iterator<Item = FieldError> {
        let rules = permissions.lists().into_iter().flat_map(|(key, rules)| rules.iter().map(move |rule| (key, rule)));
        rules.filter(|(_, rule)| !can_fit(rule, &self.names)).map(|(key, rule)| {
            let programs = &self.programs;
            let wrong = format!("\"{rule}\" can be about no tool of {programs}, so that nothing would come of it");
            let right = suggestion::did_you_mean(rule, &self.names, "the names here are");
            FieldError { field: key.to_owned(), wrong, right }
        })
    }

    /// Rules with a pattern for a command that no program reports.
    pub(crate) fn unreported_commands(&self, permissions: &Rules) -> impl Iterator<Item = FieldError> {
        let rules = permissions.allow_commands.iter().filter(|rule| !can_fit(&rule.tool, &self.reporting));
        rules.map(|CommandRule { tool, pattern }| {
            let programs = &self.programs;
            let wrong = format!("\"{tool}({pattern})\" has a pattern, and {programs} does not report such a command");
            let right = match self.reporting.is_empty() {
                true => "name the tool alone".to_owned(),
                false => format!("patterns are for {}; name other tools alone", self.reporting.join(", ")),
            };
            FieldError { field: "allow".to_owned(), wrong, right }
        })
    }
}
