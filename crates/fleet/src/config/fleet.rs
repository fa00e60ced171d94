//! A workspace folder with its agents: `agents.yaml` and the files of `agents.d/` beside the settings of the server.
//! All of it is optional; where no file lists an agent, the demo fleet is served.

use std::path::{Path, PathBuf};

use serde_json::Value;
use switchboard_host::config::agent_name::AgentName;
use switchboard_host::config::section::Reader;
use switchboard_host::config::workspace::{Loader, origin_of};
use switchboard_host::config::{Overrides, Problem, Problems, Workspace, suggestion};
use switchboard_host::flags::ConfigFlags;

use crate::config::agent_files;
use crate::config::agents::{self, Agent, Entry, Kind};
use crate::config::drop_ins::{self, DropIns};
use crate::config::remote_agent::RemoteAgent;

/// What was found in a workspace folder.
#[derive(Debug, Clone)]
pub struct FleetConfig {
    /// The folder and the settings of its server.
    pub workspace: Workspace,
    /// The agents to serve; empty if all are elsewhere.
    pub agents: Vec<Agent>,
    /// The agents elsewhere, which can be called by name.
    pub remotes: Vec<RemoteAgent>,
    /// Whether no agent is configured, so that the demo agents are served.
    pub demo: bool,
}

impl FleetConfig {
    /// Loads the workspace under these flags and this process's environment, and looks into the files it names.
    pub fn of(flags: &ConfigFlags) -> Result<Self, Problems> {
        let fleet = Self::load(&flags.workspace, &flags.overrides())?;
        fleet.workspace.check_files()?;
        Ok(fleet)
    }

    /// Loads the settings of the folder's server alone, for a command that asks the server: it may be about what is wrong with
    /// the files of agents.
    pub fn settings(folder: &Path, overrides: &Overrides) -> Result<Workspace, Problems> {
        Loader::open(folder, overrides)?.finish(Vec::new())
    }

    /// Loads the folder, or says everything that is wrong with it.
    pub fn load(folder: &Path, overrides: &Overrides) -> Result<Self, Problems> {
        let mut loader = Loader::open(folder, overrides)?;
        let (mut agents, mut remotes) = (Vec::new(), Vec::new());
        for entry in entries(&mut loader, overrides) {
            match entry {
                Entry::Hosted(agent) => agents.push(placed(&mut loader, *agent)),
                Entry::Remote(agent) => remotes.push(*agent),
            }
        }
        let demo = agents.is_empty() && remotes.is_empty();
        if demo {
            agents = Agent::demo_fleet();
        }
        check_default_agent(&mut loader, &agents, &remotes);
        let workspace = loader.finish(comparable(&agents))?;
        Ok(Self { workspace, agents, remotes, demo })
    }
}

fn entries(loader: &mut Loader<'_>, overrides: &Overrides) -> Vec<Entry> {
    match agent_files::environment_entries(&overrides.environment) {
        Some(Ok(entries)) => return entries,
        Some(Err(problems)) => {
            let warning = |problem: Problem| format!("{problem}; the files count instead");
            loader.workspace.warnings.extend(problems.into_iter().map(warning));
        }
        None => {}
    }
    loader.warn_of_unread_files("agents.yaml", &["agents.yml", "agents.json", "agent.yaml", "agent.yml"]);
    let mut entries = Vec::new();
    let mut empty = Vec::new();
    let mut paths = vec![PathBuf::from("agents.yaml")];
    paths.extend(agent_folder(loader));
    for path in paths {
        let Some(node) = loader.file(&path) else { continue };
        let mut reader = Reader::default();
        let known = entries.len();
        agents::read_file(&mut reader, &node, &mut entries);
        if entries.len() == known && reader.problems.is_empty() {
            empty.push(loader.shown(&path));
        }
        loader.problems.append(&mut reader.problems);
    }
    let served = if entries.is_empty() { ", so that the demo agents are served" } else { "" };
    let warning = |file| format!("{file} lists no agent{served}: write them under agents, or remove the file");
    loader.workspace.warnings.extend(empty.into_iter().map(warning));
    entries
}

/// The files of `agents.d/` that are read. Others that look as if they were meant to be are warned of.
fn agent_folder(loader: &mut Loader<'_>) -> Vec<PathBuf> {
    let found = DropIns::list(&loader.workspace.folder);
    for error in &found.errors {
        loader.cannot_read(Path::new(drop_ins::FOLDER), error);
    }
    for path in &found.unread {
        let unread = format!("{} is not read: end its name in .yaml", loader.shown(path));
        loader.workspace.unread.push(unread);
    }
    found.files
}

/// The agent with its paths in full. What they name and is not there yet is warned of.
fn placed(loader: &mut Loader<'_>, mut agent: Agent) -> Agent {
    if let Kind::Cli(cli) = &mut agent.kind {
        cli.start_at(&loader.workspace.folder);
        let missing = cli.missing().into_iter();
        let warning = |missing| format!("{}: agent {}: {missing}", agent.origin, agent.name);
        loader.workspace.warnings.extend(missing.map(warning));
    }
    agent
}

/// Warns of a default agent that no file has. It is no problem: it may be one that is registered, which the files do not
/// know, however much its name is like one of theirs.
fn check_default_agent(loader: &mut Loader<'_>, agents: &[Agent], remotes: &[RemoteAgent]) {
    let Some(name) = &loader.workspace.config.server.default_agent else {
        return;
    };
    // An agent that was refused is reported already; its absence here would be the same problem again.
    let remotes = remotes.iter().filter(|agent| agent.serving.serve);
    let served: Vec<&AgentName> =
        agents.iter().map(|agent| &agent.name).chain(remotes.map(|agent| &agent.name)).collect();
    if !loader.problems.is_empty() || served.contains(&name) {
        return;
    }
    let names: Vec<&str> = served.iter().map(|name| name.as_str()).collect();
    let right = suggestion::did_you_mean(name.as_str(), &names, "the agents are");
    let key = "server.defaultAgent";
    let origin = origin_of(&loader.workspace.settings, key);
    let warning = format!("{origin}: {key}: no file has an agent \"{name}\", it has to be registered: {right}");
    loader.workspace.warnings.push(warning);
}

/// Agents without the places they stand at.
fn comparable(agents: &[Agent]) -> Vec<Value> {
    let without_origin = |agent: &Agent| {
        let mut agent = serde_json::to_value(agent).unwrap_or_default();
        if let Some(members) = agent.as_object_mut() {
            members.remove("origin");
        }
        agent
    };
    agents.iter().map(without_origin).collect()
}
