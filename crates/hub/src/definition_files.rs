//! Folders with a file for each definition, of routes and of ceremonies. They are read again and again by their content, because
//! an edit may leave size and time of a file as they were. A file with a problem leaves its definition as it is.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use serde_json::Value;
use switchboard_engine::sha256;
use switchboard_host::config::document::{Content, Node};
use switchboard_host::config::problem::Origin;
use switchboard_host::config::{regular_file, substitution};

use crate::definition_reader::Problem;

/// A definition is much smaller.
const LARGEST: u64 = 256 << 10;
/// How deep a file may be nested.
const DEEPEST: usize = 24;

/// What is in such a file.
pub(crate) trait FileDefinition: Clone {
    /// Reads one. `name` is the one that it has if it does not say.
    fn read(given: &Value, name: Option<&str>) -> Result<Self, Vec<Problem>>;

    fn name(&self) -> &str;
}

/// Reads a folder of definitions.
pub(crate) struct DefinitionFiles<D> {
    folder: PathBuf,
    /// For `${VAR}`.
    environment: BTreeMap<String, String>,
    /// What counts; nothing before the first reading.
    known: Option<Contents>,
    /// What was read since, while something in it may be in the middle of being written.
    unsettled: Option<Contents>,
    /// The definition of each file when that was last good.
    good: BTreeMap<PathBuf, D>,
}

/// Digests of the files, or why one cannot be read.
type Contents = BTreeMap<PathBuf, Result<[u8; 32], String>>;

/// The definitions of the files.
#[derive(Clone, Debug)]
pub(crate) struct Listing<D> {
    /// By name.
    pub(crate) found: BTreeMap<String, D>,
    /// What is wrong with files whose definitions stay as they were.
    pub(crate) problems: Vec<String>,
}

impl<D> Default for Listing<D> {
    fn default() -> Self {
        Self { found: BTreeMap::new(), problems: Vec::new() }
    }
}

impl<D: FileDefinition> DefinitionFiles<D> {
    pub(crate) fn new(folder: PathBuf, environment: BTreeMap<String, String>) -> Self {
        Self { folder, environment, known: None, unsettled: None, good: BTreeMap::new() }
    }

    /// Reads the files; nothing if they are what they were, or if that is not certain yet. An operator who asks for a reading
    /// has written everything.
    pub(crate) fn read(&mut self, is_asked_for: bool) -> Option<Listing<D>> {
        let sources = self.sources();
        let digest =
            |source: &Result<Vec<u8>, String>| source.as_ref().map(|it| sha256([&it[..]])).map_err(Clone::clone);
        let now: Contents = sources.iter().map(|(path, source)| (path.clone(), digest(source))).collect();
        if self.known.as_ref() == Some(&now) {
            self.unsettled = None;
            return None;
        }
        // An editor empties or removes a file before it writes it anew: that counts once it was read so twice in a row.
        let is_complete = |(path, source): (&PathBuf, &Result<Vec<u8>, String>)| {
            let is_known = self.known.as_ref().is_some_and(|known| known.get(path) == now.get(path));
            is_known || source.as_ref().map_or(true, |source| parse(source).is_ok_and(|value| !value.is_null()))
        };
        let is_gone = self.known.iter().flat_map(BTreeMap::keys).any(|path| !now.contains_key(path));
        let is_settled = self.known.is_none()
            || is_asked_for
            || self.unsettled.as_ref() == Some(&now)
            || (!is_gone && sources.iter().all(is_complete));
        if !is_settled {
            self.unsettled = Some(now);
            return None;
        }
        (self.known, self.unsettled) = (Some(now), None);
        Some(self.list(sources))
    }

    /// Whether the files are to be read again in a moment.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.unsettled.is_some()
    }

    fn list(&mut self, sources: BTreeMap<PathBuf, Result<Vec<u8>, String>>) -> Listing<D> {
        let mut listing = Listing::default();
        let is_unlisted = matches!(sources.get(&self.folder), Some(Err(_)));
        // Which files are in a folder that cannot be listed is not known: none of them is gone.
        self.good.retain(|path, _| is_unlisted || sources.contains_key(path));
        for (path, source) in &sources {
            let read = source.as_ref().map_err(Clone::clone).and_then(|source| self.definition(path, source));
            match read {
                Ok(definition) => {
                    self.good.insert(path.clone(), definition);
                }
                Err(problem) => listing.problems.push(format!("{}: {problem}", path.display())),
            }
        }
        for (path, definition) in &self.good {
            let name = definition.name().to_owned();
            match listing.found.contains_key(&name) {
                false => drop(listing.found.insert(name, definition.clone())),
                true => {
                    let problem =
                        format!("{}: name {name:?} is that of a file before it: choose another", path.display());
                    listing.problems.push(problem);
                }
            }
        }
        listing
    }

    fn definition(&self, path: &Path, source: &[u8]) -> Result<D, String> {
        let mut value = parse(source)?;
        let mut problems = Vec::new();
        self.substitute(&mut value, "", &mut problems);
        let name = path.file_stem().and_then(|stem| stem.to_str());
        let read = D::read(&value, name);
        problems.extend(read.as_ref().err().into_iter().flatten().map(ToString::to_string));
        match read {
            Ok(definition) if problems.is_empty() => Ok(definition),
            _ => Err(problems.join("; ")),
        }
    }

    /// Fills in `${VAR}`.
    fn substitute(&self, value: &mut Value, path: &str, problems: &mut Vec<String>) {
        match value {
            Value::String(text) if text.contains("${") => {
                let origin = Origin::File { file: path.into(), line: None };
                let mut node = Node { origin, content: Content::Text(std::mem::take(text)) };
                let mut found = Vec::new();
                substitution::substitute(&mut node, &self.environment, &mut found);
                problems.extend(found.iter().map(|problem| format!("{path} {}: {}", problem.wrong, problem.right)));
                if let Content::Text(filled) = node.content {
                    *text = filled;
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.substitute(item, &format!("{path}[{index}]"), problems);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    self.substitute(member, &path, problems);
                }
            }
            _ => {}
        }
    }

    /// What is in the files. A folder that is not there holds none; one that cannot be listed is one that cannot be read.
    fn sources(&self) -> BTreeMap<PathBuf, Result<Vec<u8>, String>> {
        let mut sources = BTreeMap::new();
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return sources,
            Err(error) => {
                sources.insert(self.folder.clone(), Err(error.to_string()));
                return sources;
            }
        };
        for entry in entries {
            match entry.map(|entry| entry.path()) {
                Ok(path) if is_definition(&path) => match read(&path) {
                    Ok(source) => drop(sources.insert(path, Ok(source))),
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => drop(sources.insert(path, Err(error.to_string()))),
                },
                Ok(_) => {}
                Err(error) => drop(sources.insert(self.folder.clone(), Err(error.to_string()))),
            }
        }
        sources
    }
}

fn is_definition(path: &Path) -> bool {
    let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !is_hidden
        && path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let bytes = path.metadata()?.len();
    if bytes > LARGEST {
        let problem = format!("it has {bytes} bytes, and may have {LARGEST}");
        return Err(Error::new(ErrorKind::InvalidData, problem));
    }
    regular_file::read(path)
}

/// A file as a value; YAML or JSON.
pub(crate) fn parse(source: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(source).map_err(|_| "it is not UTF-8 text: save it as such".to_owned())?;
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    let budget = serde_saphyr::budget! { max_depth: DEEPEST };
    let options = serde_saphyr::options! { with_snippet: false, budget: budget };
    let read = serde_saphyr::from_str_with_options(text, options);
    read.map_err(|error| {
        format!("it is not YAML that can be read: {}", error.to_string().lines().next().unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::{Definition, Then};

    const ROUTE: &str = "when: { topic: task.failed.# }\nthen: { skill: triage }\n";

    fn names(listing: Option<Listing<Definition>>) -> Option<(Vec<String>, usize)> {
        listing.map(|listing| (listing.found.into_keys().collect(), listing.problems.len()))
    }

    #[test]
    fn files_count_by_content_once_they_are_whole() {
        let folder = tempfile::TempDir::new().unwrap_or_else(|error| panic!("{error}"));
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).is_ok();
        let variables = BTreeMap::from([("SKILL".to_owned(), "mend".to_owned())]);
        let mut files = DefinitionFiles::<Definition>::new(folder.path().to_owned(), variables);
        let found = |names: &[&str], problems| {
            Some((names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), problems))
        };
        assert!(write("one.yaml", ROUTE) && write("two.yml", "when: {}\n") && write("notes.txt", "#"));
        assert_eq!(names(files.read(false)), found(&["one"], 1));
        assert_eq!(names(files.read(false)), None, "nothing has changed");
        // Of the same length, and a variable in it.
        assert!(write(
            "two.yml",
            "{\"when\":{\"topic\":\"alert.#\"},\"then\":{\"skill\":\"${SKILL}\"},\"name\":\"three\"}"
        ));
        let listing = files.read(false).unwrap_or_default();
        let then = &listing.found["three"].then;
        assert!(matches!(then, Then::Send { skill: Some(skill), .. } if skill == "mend"), "{then:?}");
        // A file that is being written keeps its route.
        assert!(write("one.yaml", ""));
        assert_eq!((names(files.read(false)), files.is_unsettled()), (None, true));
        assert!(write("one.yaml", &ROUTE.replace("triage", "triagE")));
        assert_eq!(names(files.read(false)), found(&["one", "three"], 0));
        // One that stays empty is a problem, and one that stays away is gone.
        assert!(write("one.yaml", ""));
        assert_eq!((names(files.read(false)), names(files.read(false))), (None, found(&["one", "three"], 1)));
        assert!(std::fs::remove_file(folder.path().join("one.yaml")).is_ok());
        assert_eq!((names(files.read(false)), names(files.read(false))), (None, found(&["three"], 0)));
        assert!(std::fs::remove_file(folder.path().join("two.yml")).is_ok());
        assert_eq!(names(files.read(true)), found(&[], 0), "an operator has asked");
        // The same name twice, and a variable that is not there.
        assert!(write("a.yaml", &format!("name: same\n{ROUTE}")) && write("b.yaml", &format!("name: same\n{ROUTE}")));
        assert!(write("c.yaml", &ROUTE.replace("triage", "'${NO_SUCH_VARIABLE}'")));
        assert_eq!(names(files.read(false)), found(&["same"], 2));
        assert!(write("d.yaml", &" ".repeat(300 << 10)));
        assert_eq!(names(files.read(true)), found(&["same"], 3));
    }
}
