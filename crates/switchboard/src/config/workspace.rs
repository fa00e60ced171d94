//! A workspace folder, loaded: `switchboard.yaml`, `agents.yaml` and `agents.d/`, under the environment and the flags.
//! All of it is optional; an empty folder is a workspace with the defaults and the demo fleet.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use switchboard_server::{Tls, TlsError, TlsPart};

use crate::config::agents::{self, Agent, Entry, Kind};
use crate::config::document::{self, Node};
use crate::config::problem::Mismatch;
use crate::config::remote_agent::RemoteAgent;
use crate::config::section::Reader;
use crate::config::{
    Config, Origin, Overrides, Problem, Problems, Setting, environment, push_notification, substitution, suggestion,
};

/// What was found in a workspace folder.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The folder.
    pub folder: PathBuf,
    /// The settings in force.
    pub config: Config,
    /// The agents to serve; empty if they were not asked for, or if all are elsewhere.
    pub agents: Vec<Agent>,
    /// The agents elsewhere, which can be called by name.
    pub remotes: Vec<RemoteAgent>,
    /// Whether nobody configured an agent, so that the demo fleet is served.
    pub demo: bool,
    /// The files that were read, in order.
    pub files: Vec<String>,
    /// Every setting with who decided it.
    pub settings: Vec<Setting>,
    /// What is not wrong but probably not meant.
    pub warnings: Vec<String>,
    /// Those of them that matter to every command: files and variables that look like settings and are not read.
    pub unread: Vec<String>,
}

impl Workspace {
    /// Loads the folder, or says everything that is wrong with it.
    ///
    /// # Errors
    /// All problems of all files, variables and flags together.
    pub fn load(folder: &Path, overrides: &Overrides) -> Result<Self, Problems> {
        check_folder(folder)?;
        let mut loader = Loader::new(folder, overrides);
        let (config, settings) = loader.switchboard();
        let (mut agents, mut remotes) = (Vec::new(), Vec::new());
        for entry in loader.agents() {
            match entry {
                Entry::Hosted(agent) => agents.push(loader.placed(*agent)),
                Entry::Remote(agent) => remotes.push(*agent),
            }
        }
        let demo = agents.is_empty() && remotes.is_empty();
        if demo {
            agents = Agent::demo_fleet();
        }
        loader.check_default_agent(&config, &settings, &agents);
        loader.warn_of_unknown_variables(&settings);
        loader.warnings.extend(config.server.plain_text_warning());
        if !loader.problems.is_empty() {
            return Err(loader.into_problems());
        }
        let Loader { files, warnings, unread, .. } = loader;
        let warnings = unread.iter().cloned().chain(warnings).collect();
        Ok(Self { folder: folder.to_owned(), config, agents, remotes, demo, files, settings, warnings, unread })
    }

    /// Loads the settings of a folder and none of its agents, for a program that brings its own.
    ///
    /// # Errors
    /// All problems of `switchboard.yaml`, variables and flags together.
    pub fn settings_only(folder: &Path, overrides: &Overrides) -> Result<Self, Problems> {
        check_folder(folder)?;
        let mut loader = Loader::new(folder, overrides);
        let (config, settings) = loader.switchboard();
        loader.warn_of_unknown_variables(&settings);
        loader.warnings.extend(config.server.plain_text_warning());
        if !loader.problems.is_empty() {
            return Err(loader.into_problems());
        }
        let Loader { files, warnings, unread, .. } = loader;
        let warnings = unread.iter().cloned().chain(warnings).collect();
        let (agents, remotes) = (Vec::new(), Vec::new());
        Ok(Self { folder: folder.to_owned(), config, agents, remotes, demo: false, files, settings, warnings, unread })
    }

    /// The data directory in full, so that whoever reads it in a message need not know where the command was typed.
    /// From the workspace folder if it is relative.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        let data_dir = self.folder.join(&self.config.store.data_dir);
        std::path::absolute(&data_dir).unwrap_or(data_dir)
    }

    /// Looks into the files that the settings name and that a server needs to start. A command that only asks a running
    /// server something does without them.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn check_files(&self) -> Result<(), Problems> {
        let Some((certificate, key)) = self.config.server.tls.files() else { return Ok(()) };
        let Err(errors) = Tls::open(certificate, key) else { return Ok(()) };
        let problem = |error: &TlsError| {
            let key = match error.part() {
                TlsPart::Certificate => "server.tls.cert",
                TlsPart::Key => "server.tls.key",
            };
            Problem::new(origin_of(&self.settings, key), key, Mismatch::new(error.to_string(), error.right()))
        };
        Err(Problems(errors.iter().map(problem).collect()))
    }
}

fn check_folder(folder: &Path) -> Result<(), Problems> {
    if folder.is_dir() {
        return Ok(());
    }
    let shown = folder.display();
    let mismatch = match folder.exists() {
        true => Mismatch::new(format!("{shown} is a file"), "name the folder that holds switchboard.yaml"),
        false => {
            Mismatch::new(format!("the workspace folder {shown} does not exist"), "create it, or name another one")
        }
    };
    Err(Problems(vec![Problem::new(Origin::Flag { flag: "--workspace" }, "", mismatch)]))
}

struct Loader<'a> {
    folder: &'a Path,
    overrides: &'a Overrides,
    files: Vec<String>,
    problems: Vec<Problem>,
    warnings: Vec<String>,
    unread: Vec<String>,
    /// Variables of our name that a file fills in.
    filled_in: BTreeSet<String>,
}

impl<'a> Loader<'a> {
    fn new(folder: &'a Path, overrides: &'a Overrides) -> Self {
        Self {
            folder,
            overrides,
            files: Vec::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
            unread: Vec::new(),
            filled_in: BTreeSet::new(),
        }
    }

    fn switchboard(&mut self) -> (Config, Vec<Setting>) {
        self.warn_of_unread_files("switchboard.yaml", &["switchboard.yml", "switchboard.json"]);
        let node = self.file(Path::new("switchboard.yaml"));
        let mut config = Config::default();
        let mut reader = Reader { overrides: Some(self.overrides), ..Reader::default() };
        reader.read("", node.as_ref(), |root| config.read(root));
        config.server.tls.start_at(self.folder);
        self.problems.append(&mut reader.problems);
        let mut settings = reader.settings;
        let environment = &self.overrides.environment;
        self.warnings.append(&mut push_notification::add(environment, &mut config.webhooks, &mut settings));
        (config, settings)
    }

    fn agents(&mut self) -> Vec<Entry> {
        self.warn_of_unread_files("agents.yaml", &["agents.yml", "agents.json", "agent.yaml", "agent.yml"]);
        let mut entries = Vec::new();
        let mut empty = Vec::new();
        let mut paths = vec![PathBuf::from("agents.yaml")];
        paths.extend(self.agent_folder());
        for path in paths {
            let Some(node) = self.file(&path) else { continue };
            let mut reader = Reader::default();
            let known = entries.len();
            agents::read_file(&mut reader, &node, &mut entries);
            if entries.len() == known && reader.problems.is_empty() {
                empty.push(self.shown(&path));
            }
            self.problems.append(&mut reader.problems);
        }
        let served = if entries.is_empty() { ", so that the demo agents are served" } else { "" };
        let warning = |file| format!("{file} lists no agent{served}: write them under agents, or remove the file");
        self.warnings.extend(empty.into_iter().map(warning));
        entries
    }

    /// The files of `agents.d/`, by name, so that the order is the same everywhere.
    fn agent_folder(&mut self) -> BTreeSet<PathBuf> {
        let folder = Path::new("agents.d");
        let entries = match std::fs::read_dir(self.folder.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return BTreeSet::new(),
            Err(error) => {
                self.cannot_read(folder, &error);
                return BTreeSet::new();
            }
        };
        let mut files = BTreeSet::new();
        for entry in entries {
            match entry {
                Ok(entry) => {
                    let path = folder.join(entry.file_name());
                    let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
                    let yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
                    if yaml && !hidden {
                        files.insert(path);
                    } else if path.extension().is_some_and(is_nearly_yaml) && !hidden {
                        self.unread.push(format!("{} is not read: end its name in .yaml", self.shown(&path)));
                    }
                }
                Err(error) => self.cannot_read(folder, &error),
            }
        }
        files
    }

    /// One file with its variables filled in; nothing if it is not there or cannot be read, which is then reported.
    fn file(&mut self, path: &Path) -> Option<Node> {
        let source = match std::fs::read_to_string(self.folder.join(path)) {
            Ok(source) => source,
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => {
                self.cannot_read(path, &error);
                return None;
            }
        };
        let name = self.shown(path);
        self.files.push(name.to_string());
        self.filled_in.extend(environment::filled_in(self.overrides.environment.keys(), &source));
        match document::parse(&name, &source) {
            Ok(mut node) => {
                substitution::substitute(&mut node, &self.overrides.environment, &mut self.problems);
                Some(node)
            }
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        }
    }

    fn cannot_read(&mut self, path: &Path, error: &std::io::Error) {
        let origin = Origin::File { file: self.shown(path), line: None };
        let right = match error.kind() {
            ErrorKind::InvalidData => "save it as UTF-8 text",
            ErrorKind::IsADirectory => "put a file there, or remove the folder",
            _ => "check who may read it",
        };
        self.problems.push(Problem::new(origin, "", Mismatch::new(format!("cannot be read ({error})"), right)));
    }

    /// A path as a person would type it from where they stand.
    fn shown(&self, path: &Path) -> Arc<str> {
        let full = self.folder.join(path);
        let short = full.strip_prefix(".").unwrap_or(&full);
        Arc::from(short.display().to_string())
    }

    /// Names that are meant for a file of ours and are not its name.
    fn warn_of_unread_files(&mut self, name: &str, others: &[&str]) {
        for other in others.iter().filter(|other| self.folder.join(other).is_file()) {
            self.unread.push(format!("{} is not read: rename it to {name}", self.shown(Path::new(other))));
        }
    }

    /// The agent with its paths in full. What they name and is not there yet is warned of.
    fn placed(&mut self, mut agent: Agent) -> Agent {
        if let Kind::Cli(cli) = &mut agent.kind {
            cli.start_at(self.folder);
            let missing = cli.missing().into_iter();
            self.warnings.extend(missing.map(|missing| format!("{}: agent {}: {missing}", agent.origin, agent.name)));
        }
        agent
    }

    /// All files are read by now.
    fn warn_of_unknown_variables(&mut self, settings: &[Setting]) {
        let variables = self.overrides.environment.keys();
        self.unread.append(&mut environment::warnings(variables, settings, &self.filled_in));
    }

    /// The problems in the order a person goes through them: flags and variables, then each file from top to bottom.
    fn into_problems(mut self) -> Problems {
        let files = self.files;
        self.problems.sort_by_key(|problem| match &problem.origin {
            Origin::File { file, line } => {
                (files.iter().position(|name| **name == **file).map(|index| index + 1), *line)
            }
            _ => (None, None),
        });
        Problems(self.problems)
    }

    fn check_default_agent(&mut self, config: &Config, settings: &[Setting], agents: &[Agent]) {
        let Some(name) = &config.server.default_agent else {
            return;
        };
        // An agent that was refused is reported already; its absence here would be the same problem again.
        if !self.problems.is_empty() || agents.iter().any(|agent| agent.name == *name) {
            return;
        }
        let key = "server.defaultAgent";
        let origin = origin_of(settings, key);
        let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        let right = suggestion::did_you_mean(name.as_str(), &names, "the agents are");
        self.problems.push(Problem::new(origin, key, Mismatch::new(format!("there is no agent \"{name}\""), right)));
    }
}

/// Extensions of files that hold agents as a rule, and that are none of ours.
fn is_nearly_yaml(extension: &OsStr) -> bool {
    ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Who decided a setting.
fn origin_of(settings: &[Setting], key: &str) -> Origin {
    let setting = settings.iter().find(|setting| setting.key == key);
    setting.map_or(Origin::Default, |setting| setting.origin.clone())
}
