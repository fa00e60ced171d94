//! The agents of `agents.yaml` and `agents.d/` while a server runs: read again and again, by content, because an edit may
//! leave size and time of a file as they were. A file with a problem leaves its agents as they are.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_host::config::document::{Content, Node};
use switchboard_host::config::problem::{Mismatch, Origin};
use switchboard_host::config::section::Reader;
use switchboard_host::config::{Problem, document, substitution};

use crate::config::agents::{self, Agent, Entry, Kind};

/// Lists all agents, in place of the files.
pub const AGENTS_VARIABLE: &str = "PROTOLABS_AGENTS_JSON";

/// The folder of further files.
const DROP_INS: &str = "agents.d";

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
    /// Their items as they were written then, by name.
    items: BTreeMap<String, Value>,
}

/// A file and what is in it; an error as its text, which can be compared.
type FileContent = (PathBuf, Result<Vec<u8>, String>);

/// The agents that the files list now.
#[derive(Debug, Clone, Default)]
pub struct AgentListing {
    /// In the order of the files.
    pub entries: Vec<Entry>,
    /// Their items as they were written, by name: variables are not filled in.
    pub items: BTreeMap<String, Value>,
    /// What is wrong with files whose agents stay as they were.
    pub problems: Vec<Problem>,
}

impl AgentFiles {
    /// For a workspace folder, with the values of `${VAR}`.
    pub fn new(folder: PathBuf, environment: BTreeMap<String, String>) -> Self {
        Self { folder, environment, contents: None, unsettled: None, good: BTreeMap::new(), items: BTreeMap::new() }
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
            Some(Ok(entries)) => {
                let source = self.environment.get(AGENTS_VARIABLE).cloned().unwrap_or_default();
                self.remember(&entries, &source);
                listing.entries = entries;
            }
            // It was logged when the server started.
            None | Some(Err(_)) => self.list(&contents, &mut listing),
        }
        for entry in &mut listing.entries {
            self.place(entry);
        }
        if listing.entries.is_empty() {
            listing.entries = Agent::demo_fleet().into_iter().map(|agent| Entry::Hosted(Box::new(agent))).collect();
            let names = listing.entries.iter().map(|entry| entry.name().to_string());
            self.items.extend(names.map(|name| (name.clone(), json!({ "name": name, "builtin": name }))));
        }
        self.items.retain(|name, _| listing.entries.iter().any(|entry| entry.name().as_str() == name));
        listing.items.clone_from(&self.items);
        self.contents = Some(contents);
        Some(listing)
    }

    /// Reads an item of [`AgentListing::items`] again, as one of a file.
    pub fn read_item(&self, shown: &str, item: &Value) -> Result<Entry, Vec<Problem>> {
        let mut entries = Vec::new();
        let source = json!({ "agents": [item] }).to_string();
        let problems = read_entries(&Arc::from(shown), &source, &self.environment, &mut entries);
        match entries.pop().filter(|_| problems.is_empty()) {
            Some(mut entry) => {
                self.place(&mut entry);
                Ok(entry)
            }
            None => Err(problems),
        }
    }

    /// Paths of programs are those of the workspace folder.
    fn place(&self, entry: &mut Entry) {
        if let Entry::Hosted(agent) = entry
            && let Kind::Cli(cli) = &mut agent.kind
        {
            cli.start_at(&self.folder);
        }
    }

    /// Keeps the items of a good file as they are written.
    fn remember(&mut self, entries: &[Entry], source: &str) {
        let items = document::parse(&Arc::from(""), source).map(|file| items_of(&file)).unwrap_or_default();
        // Without a problem, each item is an entry.
        if items.len() == entries.len() {
            self.items.extend(entries.iter().map(|entry| entry.name().to_string()).zip(items));
        }
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
                let entries = listing.entries[known..].to_vec();
                let source = content.as_ref().ok().and_then(|bytes| std::str::from_utf8(bytes).ok());
                self.remember(&entries, source.unwrap_or_default());
                good.insert(path.clone(), entries);
                continue;
            }
            listing.problems.extend(problems);
            listing.entries.truncate(known);
            // Which files are in a folder that cannot be listed is not known: none of them is gone.
            let is_unlisted = |file: &PathBuf| file == path || (is_drop_ins(path) && file.starts_with(path));
            let is_read = |file: &PathBuf| contents.iter().any(|(other, _)| other == file && other != path);
            let kept: Vec<PathBuf> =
                self.good.keys().filter(|file| is_unlisted(file) && !is_read(file)).cloned().collect();
            for file in kept {
                let before = self.good.remove(&file).unwrap_or_default();
                for entry in &before {
                    if listing.entries.iter().all(|other| other.name() != entry.name()) {
                        listing.entries.push(entry.clone());
                    }
                }
                good.insert(file, before);
            }
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
        let drop_ins = Path::new(DROP_INS);
        let mut contents = Vec::new();
        match std::fs::read_dir(self.folder.join(drop_ins)) {
            Ok(entries) => {
                let mut names = Vec::new();
                for entry in entries {
                    match entry {
                        Ok(entry) => names.push(drop_ins.join(entry.file_name())),
                        Err(error) => contents.push((drop_ins.to_owned(), Err(error.to_string()))),
                    }
                }
                names.retain(|path| is_agent_file(path));
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

fn is_drop_ins(path: &Path) -> bool {
    path == Path::new(DROP_INS)
}

/// The items under `agents`, in their order.
fn items_of(file: &Node) -> Vec<Value> {
    let Content::Mapping(entries) = &file.content else { return Vec::new() };
    let agents = entries.iter().find(|entry| entry.key == "agents").map(|entry| &entry.value.content);
    let Some(Content::List(items)) = agents else { return Vec::new() };
    items.iter().map(|item| as_written(&item.content)).collect()
}

fn as_written(content: &Content) -> Value {
    match content {
        Content::Empty | Content::Reported => Value::Null,
        Content::Text(text) => Value::from(text.as_str()),
        Content::List(items) => items.iter().map(|item| as_written(&item.content)).collect(),
        Content::Mapping(entries) => {
            let member = |entry: &document::Entry| (entry.key.clone(), as_written(&entry.value.content));
            Value::Object(entries.iter().map(member).collect())
        }
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
