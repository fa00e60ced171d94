//! Every agent that starts a program: whether what it says can be done here, by this account and with these variables.

use std::path::{Path, PathBuf};

use serde::Serialize;
use switchboard_cli_agents::adapters::{Order, Session};
use switchboard_cli_agents::{Difficulty, ProgramError, Settings, Worker, Workers};

use super::account::{may_become, runs_as_root, user_finding};
use super::finding::{Finding, Level};
use super::folder;
use super::probe_runner::ProbeRunner;
use super::program::{Program, not_executable};
use switchboard_fleet::config::cli_agent::{CliAgent, Worktree};
use switchboard_fleet::programs::{self, AgentSettingsError};

#[derive(Debug, Serialize)]
pub(super) struct AgentReport {
    pub(super) name: String,
    cli: String,
    pub(super) findings: Vec<Finding>,
}

pub(super) async fn look(probes: &ProbeRunner, name: String, agent: &CliAgent) -> AgentReport {
    let (cli, mut findings) = (agent.cli.to_string(), Vec::new());
    match programs::settings(&name, agent) {
        Ok(settings) => all(probes, agent, settings, &mut findings).await,
        Err(error) => {
            findings.extend(refused(&error));
            findings.push(folder::look("cwd", &agent.cwd, None));
        }
    }
    AgentReport { name, cli, findings }
}

fn refused(error: &AgentSettingsError) -> Vec<Finding> {
    let place = if matches!(error, AgentSettingsError::Declaration(_)) { "adapter: " } else { "" };
    error.each().into_iter().map(|(wrong, right)| Finding::problem(format!("{place}{wrong}"), right)).collect()
}

async fn all(probes: &ProbeRunner, agent: &CliAgent, mut settings: Settings, findings: &mut Vec<Finding>) {
    let user = settings.user.clone();
    findings.extend(user.as_ref().map(user_finding));
    findings.push(folder::look("cwd", &settings.cwd, user.as_ref()));
    findings.extend(settings.repos.iter().map(|repo| folder::look("repos", repo, user.as_ref())));
    findings.extend(variables(&settings));
    findings.extend(as_root(&settings));
    findings.extend(orders(&settings));
    for (name, skill) in &settings.skills {
        let (permissions, workers) = (skill.permissions.clone(), skill.workers.clone());
        let found = orders(&Settings { permissions, workers, ..settings.clone() });
        let new: Vec<Finding> = found.into_iter().filter(|finding| !findings.contains(finding)).collect();
        findings.extend(new.into_iter().map(|finding| finding.about(Some(&format!("skill {name}")))));
    }
    if user.is_some_and(|user| !may_become(&user)) {
        // No program can be started as that user; `user_finding` reports it.
        return;
    }
    if agent.worktree != Worktree::Off && settings.cwd.is_dir() {
        findings.push(worktree(probes, &settings).await);
    }
    if !settings.cwd.is_dir() {
        settings.cwd = PathBuf::from("/");
    }
    findings.extend(programs(probes, &settings).await);
}

/// The workers of an agent, with their difficulty where there is more than one.
fn workers(settings: &Settings) -> Vec<(Option<&'static str>, &Worker)> {
    match &settings.workers {
        Workers::One(worker) => vec![(None, worker)],
        Workers::ByDifficulty(each) => vec![
            (Some(Difficulty::Complex.name()), &each.complex),
            (Some(Difficulty::Mid.name()), &each.mid),
            (Some(Difficulty::Routine.name()), &each.routine),
        ],
    }
}

/// Variables that are named and not there, and the one that nearly every program needs.
fn variables(settings: &Settings) -> Vec<Finding> {
    let Some(names) = &settings.env else { return Vec::new() };
    let given = |name: &str| settings.user.is_some() && ["HOME", "USER", "LOGNAME"].contains(&name);
    let missing = names.iter().filter(|name| std::env::var_os(name).is_none() && !given(name));
    let mut findings: Vec<Finding> = missing
        .map(|name| {
            let text = format!("env: {name} is not set here, so that the program will not see it");
            Finding::warning(text, format!("set {name} for the server, or remove it from env"))
        })
        .collect();
    if !names.iter().any(|name| name == "PATH") {
        let text = "env: PATH is not among the variables, so that programs are found only by their full path";
        findings.push(Finding::warning(text, "add PATH to env"));
    }
    findings
}

fn as_root(settings: &Settings) -> Option<Finding> {
    if !runs_as_root(settings) {
        return None;
    }
    let refusing = workers(settings).into_iter().find(|(_, worker)| worker.adapter.about().binary.refuses_root);
    let title = &refusing?.1.adapter.about().title;
    let text =
        format!("it would run as root, and {title} refuses that in some of its modes; tools would run as root too");
    Some(Finding::warning(text, "add user: with the name of another account, and log in as that one"))
}

/// Whether each worker supports the permissions, models and efforts of the agent.
fn orders(settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (difficulty, worker) in workers(settings) {
        let own = || std::iter::once((worker.model.clone(), worker.effort.clone()));
        let models = worker.models.iter().map(|model| (Some(model.clone()), worker.effort.clone()));
        let efforts = worker.efforts.iter().map(|effort| (worker.model.clone(), Some(effort.clone())));
        for (model, effort) in own().chain(models).chain(efforts) {
            let order = order(settings, worker, model, effort);
            let found = match worker.adapter.start(&order) {
                Err(error) => Finding::refused(&error.to_string()),
                Ok(_) => {
                    let caution = worker.adapter.caution(&order);
                    caution.iter().map(|caution| Finding::worded(Level::Warning, caution)).collect()
                }
            };
            findings.extend(found.into_iter().map(|finding| finding.about(difficulty)));
        }
    }
    findings.dedup();
    findings
}

fn order(settings: &Settings, worker: &Worker, model: Option<String>, effort: Option<String>) -> Order {
    Order {
        prompt: "Say hello.".to_owned(),
        session: Session::New("00000000-0000-4000-8000-000000000000".to_owned()),
        cwd: settings.cwd.clone(),
        model,
        effort,
        permissions: settings.permissions.clone(),
        args: worker.args.clone(),
    }
}

async fn worktree(probes: &ProbeRunner, settings: &Settings) -> Finding {
    let shown = settings.cwd.display();
    let git = async |words: &[&str]| probes.git(&settings.cwd, settings.user.as_ref(), words).await;
    let has_commit = match git(&["rev-parse", "--show-toplevel"]).await {
        Ok(true) => git(&["rev-parse", "--verify", "--quiet", "HEAD"]).await,
        Ok(false) => {
            let text = format!("worktree: {shown} is in no git repository");
            return Finding::problem(text, "name a folder of a repository as cwd, or write worktree: off");
        }
        Err(problem) => Err(problem),
    };
    match has_commit {
        Ok(true) => Finding::ok(format!("worktree: {shown} is in a git repository with a commit")),
        Ok(false) => {
            let text = format!("worktree: the repository of {shown} has no commit, so that there is nothing to copy");
            Finding::problem(text, "commit something, or write worktree: off")
        }
        Err(problem) => Finding::problem(format!("worktree: {problem}"), "install git, or write worktree: off"),
    }
}

fn not_found(error: &ProgramError, has_path: bool) -> Finding {
    match error {
        ProgramError::NotFound { title, names, .. } if !has_path => {
            let text = format!("{title} is not found: env does not name PATH, and {names} is looked for there");
            Finding::problem(text, "add PATH to env")
        }
        ProgramError::NotFound { title, names, install } => {
            let text = format!("{title} is not installed: {names} is not on the path");
            Finding::problem(text, format!("to install it: {install}"))
        }
        ProgramError::NotExecutable { path } => not_executable(Level::Problem, path),
        ProgramError::NoSuchProgram { path } => {
            let text = format!("{path} is not a program that can be started");
            Finding::problem(text, "correct program")
        }
    }
}

async fn programs(probes: &ProbeRunner, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: Vec<(&str, Option<&Path>)> = Vec::new();
    let has_path = settings.env.as_ref().is_none_or(|names| names.iter().any(|name| name == "PATH"));
    for (difficulty, worker) in workers(settings) {
        let key = (worker.name(), worker.program.as_deref());
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let of_program = match Program::look(probes, settings, worker).await {
            Ok(program) => program.findings(&worker.adapter.about().binary, Level::Problem),
            Err(error) => vec![not_found(&error, has_path)],
        };
        findings.extend(of_program.into_iter().map(|finding| finding.about(difficulty)));
    }
    findings
}
