//! The agents of `agents.yaml` and `agents.d/` while a server runs: read again and again, by content, because an edit may
//! leave size and time of a file as they were. The files that agents name are read with them. A file with a problem leaves
//! its agents as they are.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_host::config::document::{Content, Node};
use switchboard_host::config::problem::{Mismatch, Origin};
use switchboard_host::config::section::Reader;
use switchboard_host::config::{Problem, document, regular_file, substitution};

use crate::config::agents::{self, Agent, Entry, Kind};
use crate::config::drop_ins::{self, DropIns};
use crate::config::named_files::NamedFiles;

/// Lists all agents, in place of the files.
pub const AGENTS_VARIABLE: &str = "PROTOLABS_AGENTS_JSON";

/// Reads the files of a workspace folder.
pub struct AgentFiles {
    folder: PathBuf,
    environment: BTreeMap<String, String>,
    /// What counts: the last reading that was settled.
    known: Option<Reading>,
    /// What was read since, while something in it may be in the middle of being written.
    unsettled: Option<Reading>,
    /// An operator has asked for the next reading.
    is_asked_for: bool,
    /// What was wrong with the files when they were last read.
    problems: Vec<String>,
    /// The agents of each file when it was last good.
    good: BTreeMap<PathBuf, Vec<Entry>>,
    /// Their items as they were written then, by name.
    items: BTreeMap<String, Value>,
}

/// What was read at one time.
#[derive(PartialEq)]
struct Reading {
    /// The files that list agents, in their order.
    files: Vec<FileContent>,
    /// The files that these agents name.
    named: NamedFiles,
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
        let (good, items) = (BTreeMap::new(), BTreeMap::new());
        Self {
            folder,
            environment,
            known: None,
            unsettled: None,
            is_asked_for: false,
            problems: Vec::new(),
            good,
            items,
        }
    }

    /// Reads the files; nothing if they are what they were the last time, or if that is not certain yet, see
    /// [`Self::is_unsettled`]. Where no file lists an agent, the demo fleet is listed.
    pub fn read(&mut self) -> Option<AgentListing> {
        let named = self.known.as_ref().map(|known| known.named.read_again());
        let mut now = Reading { files: self.contents(), named: named.unwrap_or_default() };
        let (before, is_asked_for) = (self.unsettled.take(), std::mem::take(&mut self.is_asked_for));
        let mut is_same = false;
        // At the start nothing is known that could be lost.
        if let Some(known) = &self.known {
            is_same = *known == now;
            // What is wrong with a file may be mended in another one that is named in it and was not read.
            if is_same && (!is_asked_for || self.problems.is_empty()) {
                return None;
            }
            if !now.is_settled(known, before.as_ref(), is_asked_for) {
                self.unsettled = Some(now);
                return None;
            }
        }
        let mut listing = AgentListing::default();
        match environment_entries(&self.environment) {
            Some(Ok(entries)) => {
                let source = self.environment.get(AGENTS_VARIABLE).cloned().unwrap_or_default();
                self.remember(&entries, &source);
                listing.entries = entries;
            }
            // It was logged when the server started.
            None | Some(Err(_)) => self.list(&now.files, &mut listing),
        }
        let mut named = NamedFiles::default();
        for entry in &mut listing.entries {
            self.place(entry);
            named.note(entry, &self.folder, &now.named);
        }
        now.named = named;
        if listing.entries.is_empty() {
            listing.entries = Agent::demo_fleet().into_iter().map(|agent| Entry::Hosted(Box::new(agent))).collect();
            let names = listing.entries.iter().map(|entry| entry.name().to_string());
            self.items.extend(names.map(|name| (name.clone(), json!({ "name": name, "builtin": name }))));
        }
        self.items.retain(|name, _| listing.entries.iter().any(|entry| entry.name().as_str() == name));
        listing.items.clone_from(&self.items);
        self.known = Some(now);
        let problems: Vec<String> = listing.problems.iter().map(ToString::to_string).collect();
        let is_repeated = is_same && problems == self.problems;
        self.problems = problems;
        (!is_repeated).then_some(listing)
    }

    /// Has the next reading count as an operator wants it who asks for one, and so has written everything: a file that is
    /// missing then is gone.
    pub fn ask_for_next(&mut self) {
        self.is_asked_for = true;
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
            let is_unlisted = |file: &PathBuf| file == path || (drop_ins::is_folder(path) && file.starts_with(path));
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
            Err(error) => return unreadable(error, "check that it is a file, and who may read it"),
        };
        let source = match std::str::from_utf8(bytes) {
            Ok(source) => source,
            Err(error) => return unreadable(&error.to_string(), "save it as UTF-8 text"),
        };
        read_entries(&shown, source, &self.environment, entries)
    }

    /// The files, in their order. A folder that cannot be listed is one that cannot be read.
    fn contents(&self) -> Vec<FileContent> {
        let found = DropIns::list(&self.folder);
        let unlisted = |error: &std::io::Error| (PathBuf::from(drop_ins::FOLDER), Err(error.to_string()));
        let mut contents: Vec<FileContent> = found.errors.iter().map(unlisted).collect();
        let mut paths = vec![PathBuf::from("agents.yaml")];
        paths.extend(found.files);
        for path in paths {
            match regular_file::read(&self.folder.join(&path)) {
                Ok(bytes) => contents.push((path, Ok(bytes))),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => contents.push((path, Err(error.to_string()))),
            }
        }
        contents
    }
}

impl Reading {
    /// Whether all that differs from what is known may count. An editor empties, moves or removes a file before it writes it
    /// anew, and a certificate is renewed before its key. So a file that is empty or cannot be parsed counts once it has
    /// been read so twice in a row, and so does one that is missing, and any change of a file that an agent names, whose
    /// form is not known here. For the last two it is enough that an operator has asked for this reading.
    fn is_settled(&self, known: &Self, before: Option<&Self>, is_asked_for: bool) -> bool {
        let was_read =
            |file: &FileContent| known.files.contains(file) || before.is_some_and(|before| before.files.contains(file));
        if self.files.iter().any(|file| may_be_half_written(&file.1) && !was_read(file)) {
            return false;
        }
        if is_asked_for {
            return true;
        }
        let was_missing = |path: &Path| before.is_some_and(|before| !before.has(path));
        if known.files.iter().any(|(path, _)| !self.has(path) && !was_missing(path)) {
            return false;
        }
        self.named.is_settled(&known.named, before.map(|before| &before.named))
    }

    fn has(&self, path: &Path) -> bool {
        self.files.iter().any(|(file, _)| file == path)
    }
}

/// Whether a file is empty or cannot be parsed.
fn may_be_half_written(content: &Result<Vec<u8>, String>) -> bool {
    let Ok(bytes) = content else { return false };
    let Ok(source) = std::str::from_utf8(bytes) else { return true };
    source.trim().is_empty() || document::parse(&Arc::from(""), source).is_err()
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
