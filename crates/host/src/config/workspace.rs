//! A workspace folder, loaded: `switchboard.yaml` under the environment and the flags. The file is optional; an empty
//! folder is a workspace with the defaults. A program with more files in the folder reads them with the same [`Loader`].

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use switchboard_server::{Tls, TlsError, TlsPart};

use crate::config::document::{self, Node};
use crate::config::problem::Mismatch;
use crate::config::section::Reader;
use crate::config::{
    Config, Origin, Overrides, Problem, Problems, Setting, earlier_names, environment, push_notification, regular_file,
    substitution,
};

/// What was found in a workspace folder.
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    /// The folder.
    pub folder: PathBuf,
    /// The settings in force.
    pub config: Config,
    /// The agents of its files without their locations, for a reload to see whether they have changed. Empty for a
    /// program that brings its own.
    pub agents: Vec<Value>,
    /// The files that were read, in order.
    pub files: Vec<String>,
    /// Every setting with its origin.
    pub settings: Vec<Setting>,
    /// What is not wrong but probably not meant.
    pub warnings: Vec<String>,
    /// Those of them that matter to every command: files and variables that look like settings and are not read.
    pub unread: Vec<String>,
}

impl Workspace {
    /// Loads the settings of a folder and none of its agents, for a program that brings its own. Warns of files that
    /// list some.
    pub fn settings_only(folder: &Path, overrides: &Overrides) -> Result<Self, Problems> {
        let mut loader = Loader::open(folder, overrides)?;
        for path in ["agents.yaml", "agents.d"].map(Path::new).into_iter().filter(|path| folder.join(path).exists()) {
            let reason = "this program brings its own agents, switchboard serve reads it";
            let unread = format!("{} is not read: {reason}", loader.shown(path));
            loader.workspace.unread.push(unread);
        }
        loader.finish(Vec::new())
    }

    /// The absolute data directory, so that messages do not depend on the current folder. A relative one starts at the
    /// workspace folder.
    pub fn data_dir(&self) -> PathBuf {
        let data_dir = self.folder.join(&self.config.store.data_dir);
        std::path::absolute(&data_dir).unwrap_or(data_dir)
    }

    /// Looks into the files that the settings name and that a server needs to start. A command that only asks a running
    /// server something does without them.
    pub fn check_files(&self) -> Result<(), Problems> {
        let Some((certificate, key)) = self.config.server.tls.files() else { return Ok(()) };
        let Err(errors) = Tls::open(certificate, key) else { return Ok(()) };
        let problem = |error: &TlsError| {
            let key = match error.part {
                TlsPart::Certificate => "server.tls.cert",
                TlsPart::Key => "server.tls.key",
            };
            Problem::new(origin_of(&self.settings, key), key, Mismatch::new(error.to_string(), error.right))
        };
        Err(Problems(errors.iter().map(problem).collect()))
    }
}

fn check_folder(folder: &Path) -> Result<(), Problems> {
    if folder.is_dir() {
        return Ok(());
    }
    let shown = folder.display();
    let mismatch = match folder.metadata() {
        Ok(_) => Mismatch::new(format!("{shown} is a file"), "name the folder that holds switchboard.yaml"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Mismatch::new(format!("the workspace folder {shown} does not exist"), "create it, or name another one")
        }
        Err(error) => {
            let right = "name a folder that this account may read, or go to one";
            Mismatch::new(format!("the workspace folder {shown} cannot be read ({error})"), right)
        }
    };
    Err(Problems(vec![Problem::new(Origin::Flag { flag: "--workspace" }, "", mismatch)]))
}

/// Reads the files of a workspace folder and collects what is wrong with all of them.
pub struct Loader<'a> {
    overrides: &'a Overrides,
    /// What was found so far.
    pub workspace: Workspace,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// Variables of our name that a file fills in.
    filled_in: BTreeSet<String>,
}

impl<'a> Loader<'a> {
    /// Reads the settings of a folder.
    ///
    /// # Errors
    /// If there is no such folder. What is wrong with the settings is among the problems.
    pub fn open(folder: &Path, overrides: &'a Overrides) -> Result<Self, Problems> {
        check_folder(folder)?;
        let workspace = Workspace { folder: folder.to_owned(), ..Workspace::default() };
        let mut loader = Self { overrides, workspace, problems: Vec::new(), filled_in: BTreeSet::new() };
        loader.switchboard();
        Ok(loader)
    }

    /// The workspace, once all its files are read.
    pub fn finish(mut self, agents: Vec<Value>) -> Result<Workspace, Problems> {
        let variables = self.overrides.environment.keys();
        let unknown = environment::warnings(variables, &self.workspace.settings, &self.filled_in);
        self.workspace.unread.extend(unknown);
        self.workspace.unread.extend(earlier_names::warnings(&self.overrides.environment));
        self.workspace.warnings.extend(self.workspace.config.server.plain_text_warning());
        if !self.problems.is_empty() {
            return Err(self.into_problems());
        }
        let Workspace { warnings, unread, .. } = &mut self.workspace;
        warnings.splice(..0, unread.iter().cloned());
        Ok(Workspace { agents, ..self.workspace })
    }

    fn switchboard(&mut self) {
        self.warn_of_unread_files("switchboard.yaml", &["switchboard.yml", "switchboard.json"]);
        let node = self.file(Path::new("switchboard.yaml"));
        let Workspace { folder, config, settings, warnings, .. } = &mut self.workspace;
        let mut reader = Reader { overrides: Some(self.overrides), ..Reader::default() };
        reader.read("", node.as_ref(), |root| config.read(root));
        config.server.tls.start_at(folder);
        self.problems.append(&mut reader.problems);
        *settings = reader.settings;
        warnings.extend(push_notification::add(&self.overrides.environment, &mut config.webhooks, settings));
    }

    /// One file with its variables filled in; nothing if it is not there or cannot be read, which is then reported.
    pub fn file(&mut self, path: &Path) -> Option<Node> {
        let source = match regular_file::read_to_string(&self.workspace.folder.join(path)) {
            Ok(source) => source,
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => {
                self.cannot_read(path, &error);
                return None;
            }
        };
        let name = self.shown(path);
        self.workspace.files.push(name.to_string());
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

    /// Adds the problem of a file or folder that cannot be read.
    pub fn cannot_read(&mut self, path: &Path, error: &std::io::Error) {
        let origin = Origin::File { file: self.shown(path), line: None };
        let right = match error.kind() {
            ErrorKind::InvalidData => "save it as UTF-8 text",
            ErrorKind::IsADirectory => "put a file there, or remove the folder",
            ErrorKind::InvalidInput => "put a regular file there",
            _ => "check who may read it",
        };
        self.problems.push(Problem::new(origin, "", Mismatch::new(format!("cannot be read ({error})"), right)));
    }

    /// A path relative to the current folder, as a person would type it.
    pub fn shown(&self, path: &Path) -> Arc<str> {
        let full = self.workspace.folder.join(path);
        let short = full.strip_prefix(".").unwrap_or(&full);
        Arc::from(short.display().to_string())
    }

    /// Warns of files whose name is close to the expected one, which are not read.
    pub fn warn_of_unread_files(&mut self, name: &str, others: &[&str]) {
        let folder = &self.workspace.folder;
        let Ok(entries) = folder.read_dir() else { return };
        let files = entries.flatten().filter(|entry| entry.path().is_file());
        let mut files: Vec<String> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        files.sort();
        // Where the file system does not tell case apart, the file is found under either name.
        let any_case_is_read = folder.join(name).is_file() && !files.iter().any(|file| file == name);
        for file in &files {
            let is_name = file.eq_ignore_ascii_case(name) && file != name && !any_case_is_read;
            if is_name || others.iter().any(|other| file.eq_ignore_ascii_case(other)) {
                let unread = format!("{} is not read: rename it to {name}", self.shown(Path::new(file)));
                self.workspace.unread.push(unread);
            }
        }
    }

    /// The problems in the order a person goes through them: flags and variables, then each file from top to bottom.
    fn into_problems(mut self) -> Problems {
        let files = self.workspace.files;
        self.problems.sort_by_key(|problem| match &problem.origin {
            Origin::File { file, line } => {
                (files.iter().position(|name| **name == **file).map(|index| index + 1), *line)
            }
            _ => (None, None),
        });
        Problems(self.problems)
    }
}

/// The origin of a setting.
pub fn origin_of(settings: &[Setting], key: &str) -> Origin {
    let setting = settings.iter().find(|setting| setting.key == key);
    setting.map_or(Origin::Default, |setting| setting.origin.clone())
}
