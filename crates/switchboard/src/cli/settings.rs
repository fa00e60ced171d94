//! Settings of calls from files: `A2ACLI_NAME=value` lines in the `.env` of this folder or one above it (or the file that
//! `--config` names), and below that in `~/.config/a2a-cli/.env`. They stand under the environment, and flags above both.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::{Arg, ArgMatches, Command};

use crate::commands::calling::Failure;

/// The beginning of every name.
const PREFIX: &str = "A2ACLI_";
/// Settings that are secrets.
pub(crate) const SECRETS: [&str; 4] = ["A2ACLI_BEARER", "A2ACLI_API_KEY", "A2ACLI_CLIENT_SECRET", "A2ACLI_SVC_PARAM"];
/// No file of settings is larger.
const LARGEST: u64 = 1 << 20;

/// What the files say, the nearest first.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) files: Vec<File>,
}

/// One file.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    values: BTreeMap<String, String>,
    /// Others on this machine can read it.
    is_open: bool,
}

impl Settings {
    /// The files that count for what was typed; none for commands that call nobody.
    pub(crate) fn of(matches: &ArgMatches) -> Result<Option<Self>, Failure> {
        let mut leaf = matches;
        while let Some((_, below)) = leaf.subcommand() {
            leaf = below;
        }
        match leaf.try_get_one::<PathBuf>("config") {
            Ok(named) => Self::load(named.map(PathBuf::as_path)).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Reads the files.
    pub(crate) fn load(named: Option<&Path>) -> Result<Self, Failure> {
        let mut files = Vec::new();
        match named {
            Some(path) => files.push(File::read(path)?),
            None => files.extend(local().map(|path| File::read(&path)).transpose()?),
        }
        let global = folder().map(|folder| folder.join(".env")).filter(|path| path.is_file());
        files.extend(global.map(|path| File::read(&path)).transpose()?);
        Ok(Self { files })
    }

    /// What the files say of a setting, and which one.
    pub(crate) fn get(&self, name: &str) -> Option<(&str, &Path)> {
        self.files.iter().find_map(|file| Some((file.values.get(name)?.as_str(), file.path.as_path())))
    }

    /// The same, after the environment.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        let variable = std::env::var(name).ok().filter(|value| !value.is_empty());
        variable.or_else(|| self.get(name).map(|(value, _)| value.to_owned()))
    }

    /// Files with secrets that others can read.
    pub(crate) fn open_secrets(&self) -> impl Iterator<Item = &Path> {
        let is_open = |file: &&File| file.is_open && SECRETS.iter().any(|name| file.values.contains_key(*name));
        self.files.iter().filter(is_open).map(|file| file.path.as_path())
    }

    /// The command line with what the files say as what is usual.
    pub(crate) fn apply(&self, command: Command) -> Result<Command, Failure> {
        for argument in all_arguments(&command) {
            if let Some((value, path)) = self.said_of(argument) {
                check(argument, value, path)?;
            }
        }
        Ok(self.usual(command))
    }

    fn usual(&self, command: Command) -> Command {
        let command = command.mut_args(|argument| match self.said_of(&argument) {
            Some((value, _)) => {
                let is_secret = is_secret(&argument);
                let value: &'static str = value.to_owned().leak();
                argument.default_value(value).hide_default_value(is_secret)
            }
            None => argument,
        });
        command.mut_subcommands(|below| self.usual(below))
    }

    fn said_of(&self, argument: &Arg) -> Option<(&str, &Path)> {
        argument.get_env()?.to_str().and_then(|name| self.get(name))
    }
}

impl File {
    fn read(path: &Path) -> Result<Self, Failure> {
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
        Ok(Self { path: path.to_owned(), values: parse(&String::from_utf8_lossy(&text)), is_open })
    }
}

/// Where settings and tokens of this user are.
pub(crate) fn folder() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    Some(Path::new(&home).join(".config/a2a-cli"))
}

/// The nearest `.env`, here or above.
fn local() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().map(|folder| folder.join(".env")).find(|path| path.is_file())
}

/// The names that are ours, and their values without quotes.
fn parse(text: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for line in text.lines() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else { continue };
        let (name, value) = (name.trim(), unquoted(value.trim()));
        // An empty one is not set, as in the environment.
        if name.starts_with(PREFIX) && !value.is_empty() {
            values.insert(name.to_owned(), value);
        }
    }
    values
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

fn all_arguments(command: &Command) -> Vec<&Arg> {
    let below = command.get_subcommands().flat_map(all_arguments);
    command.get_arguments().chain(below).collect()
}

fn is_secret(argument: &Arg) -> bool {
    argument.get_env().is_some_and(|name| SECRETS.iter().any(|secret| name == *secret))
}

/// Reads a value as if it had been typed, for the words that say what is wrong with it.
fn check(argument: &Arg, value: &str, path: &Path) -> Result<(), Failure> {
    let (Some(long), true) = (argument.get_long(), argument.get_action().takes_values()) else { return Ok(()) };
    let alone = Command::new("settings").no_binary_name(true).arg(argument.clone().env(Resettable::Reset));
    match alone.try_get_matches_from([format!("--{long}={value}")]) {
        Ok(_) => Ok(()),
        Err(error) => {
            let text = error.render().to_string();
            let first = text.trim_start_matches("error: ").lines().next().unwrap_or_default().to_owned();
            Err(Failure::usage(
                format!("{}: {first}", path.display()),
                "correct the file, or name another with --config",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_as_shells_do() {
        let text = "# a comment\nexport A2ACLI_BEARER='a # b'\nA2ACLI_TIMEOUT = 30s # soon\nPATH=/bin\nA2ACLI_TENANT=\"x=y\"\n\
                    A2ACLI_EMPTY=\nnonsense\n";
        let values = parse(text);
        let expected = [("A2ACLI_BEARER", "a # b"), ("A2ACLI_TENANT", "x=y"), ("A2ACLI_TIMEOUT", "30s")];
        assert_eq!(values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<Vec<_>>(), expected);
    }
}
