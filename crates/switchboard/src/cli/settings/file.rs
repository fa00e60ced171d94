//! One file of settings: its `A2ACLI_` names with their line numbers, and its first malformed line.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::PREFIX;
use crate::commands::calling::Failure;

/// No file of settings is larger.
const LARGEST: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    /// Others on this machine can read it.
    pub(super) is_open: bool,
    /// The first line that is neither an assignment nor a comment.
    pub(super) junk: Option<usize>,
    /// Names, their lines and their values.
    values: BTreeMap<String, (usize, String)>,
}

impl File {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |why: String| {
            let message = format!("{} cannot be read: {why}", path.display());
            Failure::usage(message, "name a file with A2ACLI_NAME=value lines with --config")
        };
        let data = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
        if data.len() > LARGEST {
            return Err(wrong(format!("it is larger than {LARGEST} bytes")));
        }
        let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let is_open = data.permissions().mode() & 0o044 != 0;
        let (values, junk) = parse(&String::from_utf8_lossy(&text));
        Ok(Self { path: path.to_owned(), is_open, junk, values })
    }

    pub(super) fn value(&self, name: &str) -> Option<&str> {
        // An empty one is not set, as in the environment.
        self.values.get(name).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// All `A2ACLI_` names and their line numbers.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, usize)> {
        self.values.iter().map(|(name, (line, _))| (name.as_str(), *line))
    }
}

/// The `A2ACLI_` names with their unquoted values, and the first malformed line.
fn parse(text: &str) -> (BTreeMap<String, (usize, String)>, Option<usize>) {
    let mut values = BTreeMap::new();
    let mut junk = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else {
            if !line.is_empty() && !line.starts_with('#') {
                junk = junk.or(Some(number));
            }
            continue;
        };
        let (name, value) = (name.trim(), unquoted(value.trim()));
        if name.starts_with(PREFIX) {
            values.insert(name.to_owned(), (number, value));
        }
    }
    (values, junk)
}

fn unquoted(value: &str) -> String {
    for quote in ['"', '\''] {
        if let Some(rest) = value.strip_prefix(quote)
            && let Some((inside, _)) = rest.split_once(quote)
        {
            return inside.to_owned();
        }
    }
    // Outside quotes a comment may follow.
    value.split(" #").next().unwrap_or_default().trim_end().to_owned()
}
