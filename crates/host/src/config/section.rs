//! The one way a setting gets its value: flag, else environment, else file, else what the field already holds.
//! Each section reads its keys by name; any other key of the file is reported as unknown.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::config::document::{Content, Entry, Node};
use crate::config::earlier_names;
use crate::config::problem::{Mismatch, Origin, Problem};
use crate::config::suggestion;
use crate::config::time_span::TimeSpan;
use crate::config::value::{Scalar, Value};

/// Environment and flags, which override the files.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// Environment variables, for `SWITCHBOARD_…` and for `${VAR}` in files.
    pub environment: BTreeMap<String, String>,
    /// Command-line flags that set a key.
    pub flags: Vec<Flag>,
}

/// A command-line flag that sets a key.
#[derive(Debug, Clone)]
pub struct Flag {
    /// The flag with its dashes, for messages.
    pub flag: &'static str,
    /// The full key it sets, such as `server.bind`.
    pub key: &'static str,
    /// The value as it was typed.
    pub value: String,
}

/// One effective setting and its origin.
#[derive(Debug, Clone, Serialize)]
pub struct Setting {
    /// The full key.
    pub key: String,
    /// The value in force.
    pub value: serde_json::Value,
    /// Where it was set.
    pub origin: Origin,
}

/// Collects the settings and problems of all sections.
#[derive(Debug, Default)]
pub struct Reader<'a> {
    /// Absent for the agent files, which are lists and have no names in the environment.
    pub overrides: Option<&'a Overrides>,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// Every setting with its origin.
    pub settings: Vec<Setting>,
}

impl<'a> Reader<'a> {
    /// Reads a whole mapping. `node` is what the file says, if there is a file.
    pub fn read(&mut self, path: &str, node: Option<&Node>, read: impl FnOnce(&mut Section<'a, '_>)) {
        let mut section = Section { reader: self, path: path.to_owned(), node, known_keys: Vec::new() };
        read(&mut section);
        section.finish();
    }
}

/// The keys of a section and their defaults: implements `Default`, and a function that reads each key into its field.
/// A key is called like its field, in camel case. After the field may stand how it is read: `nonzero` for a time that
/// must not be zero, `section` for a mapping of its own, `unread` for a key that is only known. After the section may
/// stand what checks it once it is read.
#[doc(hidden)]
#[macro_export]
macro_rules! section_keys {
    ($section:ident $(with $check:ident)?, { $($field:ident $(($how:ident))?: $default:expr,)+ }) => {
        impl Default for $section {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl $section {
            pub(crate) fn read(&mut self, section: &mut $crate::config::section::Section<'_, '_>) {
                $($crate::section_keys!(@ $($how)? section, $crate::config::section::camel_case(stringify!($field)), self.$field);)+
                $(self.$check(section);)?
            }
        }
    };
    (@ $section:ident, $key:expr, $field:expr) => { $section.read($key, &mut $field) };
    (@ nonzero $section:ident, $key:expr, $field:expr) => { $section.read_nonzero($key, &mut $field) };
    (@ section $section:ident, $key:expr, $field:expr) => { $section.section($key, |section| $field.read(section)) };
    (@ unread $section:ident, $key:expr, $field:expr) => { $section.mark_known($key) };
}

/// The key of a field: `maxAge` for `max_age`.
pub fn camel_case(field: &str) -> String {
    let mut words = field.split('_');
    let mut key = words.next().unwrap_or_default().to_owned();
    for word in words {
        key.push_str(&word[..1].to_ascii_uppercase());
        key.push_str(&word[1..]);
    }
    key
}

/// A text as a mapping that has it under each of some keys.
fn with_keys(item: &Node, keys: &[&str]) -> Option<Node> {
    if keys.is_empty() || !matches!(item.content, Content::Text(_)) {
        return None;
    }
    let entry = |key: &&str| Entry { key: (*key).to_owned(), origin: item.origin.clone(), value: item.clone() };
    Some(Node { origin: item.origin.clone(), content: Content::Mapping(keys.iter().map(entry).collect()) })
}

/// A mapping that is being read.
pub struct Section<'a, 'r> {
    reader: &'r mut Reader<'a>,
    path: String,
    node: Option<&'r Node>,
    known_keys: Vec<Cow<'static, str>>,
}

impl<'a, 'r> Section<'a, 'r> {
    /// Reads one key into `field`, which holds the default.
    pub fn read<T: Value>(&mut self, key: impl Into<Cow<'static, str>>, field: &mut T) {
        let key = key.into();
        let path = self.path_of(&key);
        let (content, mut origin) = match self.found(&key) {
            Some((content, origin)) => (Some(content), origin),
            None => (None, Origin::Default),
        };
        match content.as_ref().map(T::from_content) {
            _ if content == Some(Content::Reported) => {}
            Some(Ok(value)) => *field = value,
            Some(Err(mismatch)) => {
                self.reader.problems.push(Problem::new(origin, path.clone(), mismatch));
                origin = Origin::Default;
            }
            None => {}
        }
        self.known_keys.push(key);
        if self.reader.overrides.is_some() {
            let value = serde_json::to_value(&*field).unwrap_or_default();
            self.reader.settings.push(Setting { key: path, value, origin });
        }
    }

    /// Reads one key that has no default; nothing when it is not set, or has no good value, which is then reported.
    pub fn require<T: Value>(&mut self, key: &'static str) -> Option<T> {
        let mut value = Required(None);
        self.read(key, &mut value);
        value.0
    }

    /// Reads a mapping inside this one.
    pub fn section(&mut self, key: impl Into<Cow<'static, str>>, read: impl FnOnce(&mut Section<'a, '_>)) {
        let key = key.into();
        let path = self.path_of(&key);
        let node = self.entry(&key).map(|entry| &entry.value);
        self.known_keys.push(key);
        self.reader.read(&path, node, read);
    }

    /// The items of a list of mappings, each read by `read` with its index.
    pub fn each(&mut self, key: &'static str, read: impl FnMut(&mut Section<'a, '_>, Origin)) {
        self.each_or_text(key, &[], read);
    }

    /// The same where an item may be a text, which then is the value of each of some keys.
    pub fn each_or_text(
        &mut self,
        key: &'static str,
        text_is: &[&str],
        mut read: impl FnMut(&mut Section<'a, '_>, Origin),
    ) {
        self.mark_known(key);
        let path = self.path_of(key);
        let Some(entry) = self.entry(key) else { return };
        match &entry.value.content {
            Content::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    let origin = item.origin.clone();
                    let written = with_keys(item, text_is);
                    let item = written.as_ref().unwrap_or(item);
                    self.reader.read(&format!("{path}[{index}]"), Some(item), |section| read(section, origin));
                }
            }
            Content::Empty | Content::Reported => {}
            other => {
                let mismatch = Mismatch::new(other.kind(), "write a list, each item on a line that begins with -");
                self.reader.problems.push(Problem::new(entry.value.origin.clone(), path, mismatch));
            }
        }
    }

    /// Whether a flag, a variable or the file sets this key, or a key inside it.
    pub fn is_set(&self, key: &str) -> bool {
        self.origin_of(key) != Origin::Default
    }

    /// Whether the file has this key.
    pub fn is_in_file(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// The keys that the file has, for a mapping of names.
    pub fn names(&self) -> Vec<String> {
        match self.node.map(|node| &node.content) {
            Some(Content::Mapping(entries)) => entries.iter().map(|entry| entry.key.clone()).collect(),
            _ => Vec::new(),
        }
    }

    /// Marks a key as known that the section does not read with `read`.
    pub fn mark_known(&mut self, key: impl Into<Cow<'static, str>>) {
        let key = key.into();
        if !self.known_keys.contains(&key) {
            self.known_keys.push(key);
        }
    }

    /// Reads a time that must not be zero.
    pub fn read_nonzero(&mut self, key: impl Into<Cow<'static, str>>, field: &mut TimeSpan) {
        let key = key.into();
        self.read(key.clone(), field);
        self.refuse_zero(&key, *field);
    }

    /// Refuses a time of zero where it would mean never, or without end.
    pub fn refuse_zero(&mut self, key: &str, value: TimeSpan) {
        if value == TimeSpan::ZERO {
            self.refuse(key, "0s leaves no time at all", format!("write {}", TimeSpan::WRITE));
        }
    }

    /// Adds a problem of a key whose value was parsed but is not allowed.
    pub fn refuse(&mut self, key: &str, wrong: impl Into<String>, right: impl Into<String>) {
        let problem = Problem::new(self.origin_of(key), self.path_of(key), Mismatch::new(wrong, right));
        self.reader.problems.push(problem);
    }

    /// Adds a problem of the mapping as a whole.
    pub fn refuse_all(&mut self, wrong: impl Into<String>, right: impl Into<String>) {
        let origin = self.node.map_or(Origin::Default, |node| node.origin.clone());
        self.reader.problems.push(Problem::new(origin, self.path.clone(), Mismatch::new(wrong, right)));
    }

    /// Where a key, or the first key inside it, was set.
    pub fn origin_of(&self, key: &str) -> Origin {
        if let Some((_, origin)) = self.found(key) {
            return origin;
        }
        let inside = format!("{}_", variable_name(&self.path_of(key)));
        let overrides = self.reader.overrides;
        let variable = overrides.and_then(|overrides| {
            overrides.environment.iter().find(|(name, value)| name.starts_with(&inside) && !value.is_empty())
        });
        match variable {
            Some((name, _)) => Origin::Environment { variable: name.clone() },
            None => Origin::Default,
        }
    }

    fn found(&self, key: &str) -> Option<(Content, Origin)> {
        let path = self.path_of(key);
        if let Some(overrides) = self.reader.overrides {
            if let Some(flag) = overrides.flags.iter().find(|flag| flag.key == path) {
                return Some((Content::Text(flag.value.clone()), Origin::Flag { flag: flag.flag }));
            }
            let variable = variable_name(&path);
            // An empty variable counts as absent: container tools hand over every variable they know of.
            if let Some(value) = overrides.environment.get(&variable).filter(|value| !value.is_empty()) {
                return Some((Content::Text(value.clone()), Origin::Environment { variable }));
            }
        }
        if let Some(entry) = self.entry(key) {
            return Some((entry.value.content.clone(), entry.origin.clone()));
        }
        self.reader.overrides.and_then(|overrides| earlier_names::found(&path, &overrides.environment))
    }

    fn entry(&self, key: &str) -> Option<&'r Entry> {
        match &self.node?.content {
            Content::Mapping(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Reports the keys of the file that were not read.
    fn finish(self) {
        let Some(node) = self.node else { return };
        let known: Vec<&str> = self.known_keys.iter().map(|key| &**key).collect();
        match &node.content {
            Content::Mapping(entries) => {
                for entry in entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
                    let right = suggestion::did_you_mean(&entry.key, &known, "the keys here are");
                    let problem = Problem::new(
                        entry.origin.clone(),
                        self.path_of(&entry.key),
                        Mismatch::new("unknown key", right),
                    );
                    self.reader.problems.push(problem);
                }
            }
            Content::Empty | Content::Reported => {}
            other => {
                let mismatch =
                    Mismatch::new(other.kind(), format!("write a mapping with any of the keys {}", known.join(", ")));
                self.reader.problems.push(Problem::new(node.origin.clone(), self.path, mismatch));
            }
        }
    }
}

/// A key without a default. Unlike an `Option`, it refuses an empty value.
#[derive(Serialize)]
struct Required<T>(Option<T>);

impl<T: Value> Value for Required<T> {
    fn from_content(content: &Content) -> Result<Self, Mismatch> {
        T::from_content(content).map(|value| Self(Some(value)))
    }
}

/// The environment variable of a key: `store.retention.maxAge` is `SWITCHBOARD_STORE_RETENTION_MAX_AGE`.
pub fn variable_name(key: &str) -> String {
    let mut name = String::from("SWITCHBOARD_");
    for letter in key.chars() {
        if letter == '.' {
            name.push('_');
            continue;
        }
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}
