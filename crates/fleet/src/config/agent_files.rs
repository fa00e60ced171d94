//! The agents of `agents.yaml` and `agents.d/` while a server runs: read again and again, by content, because an edit may
//! leave size and time of a file as they were. A file with a problem leaves its agents as they are.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use switchboard_host::config::problem::{Mismatch, Origin};
use switchboard_host::config::section::Reader;
use switchboard_host::config::{Problem, document, substitution};

use crate::config::agents::{self, Agent, Entry, Kind};

/// Lists all agents, in place of the files.
pub const AGENTS_VARIABLE: &str = "PROTOLABS_AGENTS_JSON";

/// Reads the files of a workspace folder.
pub struct AgentFiles {
    folder: PathBuf,
    environment: BTreeMap<String, String>,
    /// What was read the last time.
    contents: Option<Vec<FileContent>>,
    /// What was read since, with a file that may be half written.
    unsettled: Option<Vec<FileContent>>,
    /// The agents of each file when it was last good.
    good: BTreeMap<PathBuf, Vec<Entry>>,
}

/// A file and what is in it; an error as its text, which can be compared.
type FileContent = (PathBuf, Result<Vec<u8>, String>);

/// The agents that the files list now.
#[derive(Debug, Clone, Default)]
pub struct AgentListing {
    /// In the order of the files.
    pub entries: Vec<Entry>,
    /// What is wrong with files whose agents stay as they were.
    pub problems: Vec<Problem>,
}

impl AgentFiles {
    /// For a workspace folder, with the values of `${VAR}`.
    pub fn new(folder: PathBuf, environment: BTreeMap<String, String>) -> Self {
        Self { folder, environment, contents: None, unsettled: None, good: BTreeMap::new() }
    }

    /// Reads the files; nothing if they are what they were the last time. Where no file lists an agent, the demo fleet is
    /// listed. An editor may empty a file before it writes it: one that is empty or cannot be parsed counts once it has
    /// been read twice, see [`Self::is_unsettled`].
    pub fn read(&mut self) -> Option<AgentListing> {
        let contents = self.contents();
        let before = self.unsettled.take();
        if self.contents.as_ref() == Some(&contents) {
            return None;
        }
        if before.as_ref() != Some(&contents) && self.may_be_half_written(&contents) {
            self.unsettled = Some(contents);
            return None;
        }
        let mut listing = AgentListing::default();
        match environment_entries(&self.environment) {
            Some(Ok(entries)) => listing.entries = entries,
            // It was logged when the server started.
            None | Some(Err(_)) => self.list(&contents, &mut listing),
        }
        for entry in &mut listing.entries {
            if let Entry::Hosted(agent) = entry
                && let Kind::Cli(cli) = &mut agent.kind
            {
                cli.start_at(&self.folder);
            }
        }
        if listing.entries.is_empty() {
            listing.entries = Agent::demo_fleet().into_iter().map(|agent| Entry::Hosted(Box::new(agent))).collect();
        }
        self.contents = Some(contents);
        Some(listing)
    }

    /// Whether the files are to be read again in a moment, because one may have been read while it was written.
    pub fn is_unsettled(&self) -> bool {
        self.unsettled.is_some()
    }

    /// Whether a file that has changed is empty or cannot be parsed. At the start nothing is known that could be lost.
    fn may_be_half_written(&self, contents: &[FileContent]) -> bool {
        let Some(known) = &self.contents else { return false };
        let is_half = |content: &Result<Vec<u8>, String>| {
            let Ok(bytes) = content else { return false };
            let Ok(source) = std::str::from_utf8(bytes) else { return true };
            source.trim().is_empty() || document::parse(&Arc::from(""), source).is_err()
        };
        contents.iter().any(|file| !known.contains(file) && is_half(&file.1))
    }

    fn list(&mut self, contents: &[FileContent], listing: &mut AgentListing) {
        let mut good = BTreeMap::new();
        for (path, content) in contents {
            let known = listing.entries.len();
            let problems = self.list_file(path, content, &mut listing.entries);
            if problems.is_empty() {
                good.insert(path.clone(), listing.entries[known..].to_vec());
                continue;
            }
            listing.problems.extend(problems);
            listing.entries.truncate(known);
            let before = self.good.remove(path).unwrap_or_default();
            let is_free = |entry: &&Entry| listing.entries.iter().all(|other| other.name() != entry.name());
            let kept: Vec<Entry> = before.iter().filter(is_free).cloned().collect();
            listing.entries.extend(kept);
            good.insert(path.clone(), before);
        }
        self.good = good;
    }

    fn list_file(&self, path: &Path, content: &Result<Vec<u8>, String>, entries: &mut Vec<Entry>) -> Vec<Problem> {
        let shown: Arc<str> = Arc::from(self.folder.join(path).display().to_string());
        let unreadable = |error: &str, right: &str| {
            let origin = Origin::File { file: shown.clone(), line: None };
            vec![Problem::new(origin, "", Mismatch::new(format!("cannot be read ({error})"), right))]
        };
        let bytes = match content {
            Ok(bytes) => bytes,
            Err(error) => return unreadable(error, "check who may read it"),
        };
        let source = match std::str::from_utf8(bytes) {
            Ok(source) => source,
            Err(error) => return unreadable(&error.to_string(), "save it as UTF-8 text"),
        };
        read_entries(&shown, source, &self.environment, entries)
    }

    /// The files, in their order. A folder that cannot be listed is one that cannot be read.
    fn contents(&self) -> Vec<FileContent> {
        let mut paths = vec![PathBuf::from("agents.yaml")];
        let drop_ins = Path::new("agents.d");
        let mut contents = Vec::new();
        match std::fs::read_dir(self.folder.join(drop_ins)) {
            Ok(entries) => {
                let names = entries.flatten().map(|entry| drop_ins.join(entry.file_name()));
                let mut names: Vec<PathBuf> = names.filter(|path| is_agent_file(path)).collect();
                names.sort();
                paths.extend(names);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => contents.push((drop_ins.to_owned(), Err(error.to_string()))),
        }
        for path in paths {
            match std::fs::read(self.folder.join(&path)) {
                Ok(bytes) => contents.push((path, Ok(bytes))),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => contents.push((path, Err(error.to_string()))),
            }
        }
        contents
    }
}

/// Whether a file of `agents.d/` is read.
pub(crate) fn is_agent_file(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden && path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// The agents of [`AGENTS_VARIABLE`], which count in place of those of the files; what is wrong if it is malformed.
pub fn environment_entries(environment: &BTreeMap<String, String>) -> Option<Result<Vec<Entry>, Vec<Problem>>> {
    let source = environment.get(AGENTS_VARIABLE).filter(|source| !source.trim().is_empty())?;
    let mut entries = Vec::new();
    let problems = read_entries(&Arc::from(AGENTS_VARIABLE), source, environment, &mut entries);
    Some(if problems.is_empty() { Ok(entries) } else { Err(problems) })
}

/// Reads one entry as a request brings it. `${VAR}` stays as it is: what may register agents may not read variables.
pub fn read_item(shown: &str, source: &str) -> Result<Entry, Vec<Problem>> {
    let node = document::parse(&Arc::from(shown), source).map_err(|problem| vec![problem])?;
    let mut reader = Reader::default();
    let entry = agents::read_item(&mut reader, &node);
    match entry {
        Some(entry) if reader.problems.is_empty() => Ok(entry),
        _ => Err(reader.problems),
    }
}

fn read_entries(
    shown: &Arc<str>,
    source: &str,
    environment: &BTreeMap<String, String>,
    entries: &mut Vec<Entry>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut node = match document::parse(shown, source) {
        Ok(node) => node,
        Err(problem) => return vec![problem],
    };
    substitution::substitute(&mut node, environment, &mut problems);
    let mut reader = Reader::default();
    agents::read_file(&mut reader, &node, entries);
    problems.append(&mut reader.problems);
    problems
}
