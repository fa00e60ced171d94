//! Whether a program is logged in, as far as its own machine shows. Secrets are looked at only for being there.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use switchboard_cli_agents::adapters::{Binary, LoginSign};

use super::finding::{Finding, Level};

/// No file that a login writes is longer.
const LONGEST: u64 = 8 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub(super) enum Login {
    /// A variable or a file shows it.
    Found {
        sign: String,
    },
    /// None of the usual variables and files is there.
    NotFound,
    NotKnown {
        reason: String,
    },
}

impl Login {
    /// What shows where the child sees these variables.
    pub(super) fn of(binary: &Binary, env: &[(OsString, OsString)]) -> Self {
        let value = |name: &str| env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str());
        let value = |name: &str| value(name).filter(|value| !value.is_empty());
        let mut hidden = None;
        for sign in &binary.login_signs {
            match sign {
                LoginSign::Variable(name) if value(name).is_some() => return Self::Found { sign: name.clone() },
                LoginSign::Variable(_) => {}
                LoginSign::File { places, holds } => {
                    let Some(path) = place(places, value) else { continue };
                    match look(&path, holds.as_deref()) {
                        Some(true) => return Self::Found { sign: path.display().to_string() },
                        Some(false) => {}
                        None => hidden = Some(path),
                    }
                }
            }
        }
        match hidden {
            Some(path) => Self::NotKnown { reason: format!("{} cannot be read by this account", path.display()) },
            None if binary.login_signs.is_empty() => {
                Self::NotKnown { reason: "it is not known where it keeps a login".to_owned() }
            }
            None => Self::NotFound,
        }
    }

    pub(super) fn finding(&self, login: &str) -> Finding {
        match self {
            Self::Found { sign } => Finding::ok(format!("logged in, as {sign} shows")),
            Self::NotFound => Finding::warning("no sign of a login was found at its usual places", login),
            Self::NotKnown { reason } => {
                Finding::new(Level::Unknown, format!("not known whether it is logged in: {reason}"), login)
            }
        }
    }
}

fn place<'a>(places: &[(String, String)], value: impl Fn(&str) -> Option<&'a OsStr>) -> Option<PathBuf> {
    places.iter().find_map(|(variable, path)| value(variable).map(|folder| Path::new(folder).join(path)))
}

/// Whether a file shows a login; nothing if it is there and this account may not read it.
fn look(path: &Path, holds: Option<&str>) -> Option<bool> {
    // Whatever else is there is not opened: a pipe would never answer.
    let found = path.metadata().and_then(|found| if found.is_file() { File::open(path).map(Some) } else { Ok(None) });
    let file = match found {
        Ok(Some(file)) => file,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return None,
        Ok(None) | Err(_) => return Some(false),
    };
    let Some(pointer) = holds else { return Some(true) };
    let mut text = String::new();
    if file.take(LONGEST).read_to_string(&mut text).is_err() {
        return Some(false);
    }
    let content: Value = serde_json::from_str(&text).unwrap_or_default();
    Some(content.pointer(pointer).is_some_and(is_something))
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}
