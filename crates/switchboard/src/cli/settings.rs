//! Settings of calls from files: `A2ACLI_NAME=value` lines in the file that `--config` names, and below that in
//! `~/.config/a2a-cli/.env`. They stand under the environment, and flags above both. A `.env` in the current folder is not
//! read: it may have come with a cloned repository, and would decide where credentials are sent.

mod file;

pub(crate) use file::File;

use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use switchboard_host::config::suggestion::nearest;

use crate::cli::{Origins, boolean};
use crate::commands::calling::Failure;

const PREFIX: &str = "A2ACLI_";
pub(crate) const SECRETS: [&str; 4] = ["A2ACLI_BEARER", "A2ACLI_API_KEY", "A2ACLI_CLIENT_SECRET", "A2ACLI_SVC_PARAM"];
/// Settings that no flag has for its variable.
const WITHOUT_FLAG: [&str; 3] = ["A2ACLI_OUTPUT", "A2ACLI_ASYNC", "A2ACLI_CLIENT_SECRET"];
/// Says which file counts, so that no file can say it.
const CONFIG: &str = "A2ACLI_CONFIG";

/// What the files say, the nearest first.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) files: Vec<File>,
    /// A `.env` in the current folder with settings in it, which are not read.
    unread: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    Flag,
    Variable,
    File(&'a File),
    Usual,
}

impl Settings {
    /// The files of the typed command; none for commands that call no agent.
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

    pub(crate) fn load(named: Option<&Path>) -> Result<Self, Failure> {
        let global = folder().map(|folder| folder.join(".env")).filter(|path| path.is_file());
        let paths = named.map(Path::to_owned).into_iter().chain(global);
        let files = paths.map(|path| File::read(&path)).collect::<Result<Vec<File>, Failure>>()?;
        let unread = if named.is_none() { local() } else { None };
        let unread = unread.filter(|path| files.iter().all(|file| file.path != *path));
        Ok(Self { files, unread })
    }

    /// The value of a setting in the files, and its file.
    pub(crate) fn get(&self, name: &str) -> Option<(&str, &File)> {
        let name = Some(name).filter(|name| *name != CONFIG)?;
        self.files.iter().find_map(|file| Some((file.value(name)?, file)))
    }

    /// The value and its source, the environment before the files.
    pub(crate) fn value(&self, name: &str) -> Option<(String, String)> {
        let variable = std::env::var(name).ok().filter(|value| !value.is_empty());
        let variable = variable.map(|value| (value, name.to_owned()));
        variable.or_else(|| self.get(name).map(|(value, file)| (value.to_owned(), file.path.display().to_string())))
    }

    /// The same for a boolean.
    pub(crate) fn is_set(&self, name: &str) -> Result<bool, Failure> {
        let Some((value, source)) = self.value(name) else { return Ok(false) };
        boolean(&value).map_err(|right| wrong_value(name, &value, &source, &right))
    }

    pub(crate) fn source(&self, origins: &Origins, id: &str, name: &str) -> Source<'_> {
        match origins.given(id).map(|given| given.source) {
            Some(ValueSource::CommandLine) => Source::Flag,
            Some(ValueSource::EnvVariable) => Source::Variable,
            Some(_) => self.get(name).map_or(Source::Usual, |(_, file)| Source::File(file)),
            None => Source::Usual,
        }
    }

    /// Probable mistakes: secrets that other users can read, malformed lines and unknown names.
    pub(crate) fn warnings(&self, command: &Command) -> Vec<String> {
        let mut known: Vec<&str> = WITHOUT_FLAG.to_vec();
        known.extend(all_arguments(command).into_iter().filter_map(|argument| argument.get_env()?.to_str()));
        known.retain(|name| name.starts_with(PREFIX) && *name != CONFIG);
        let unread = |path: &PathBuf| {
            let path = path.display();
            format!("{path} has settings and is not read: name it with --config {path}, or in {CONFIG}")
        };
        let mut warnings: Vec<String> = self.unread.iter().map(unread).collect();
        for file in &self.files {
            let path = file.path.display();
            if file.is_open && SECRETS.iter().any(|name| file.value(name).is_some()) {
                let open = format!("{path} holds a secret and others on this machine can read it: chmod 600 {path}");
                warnings.push(open);
            }
            if let Some(line) = file.junk {
                warnings.push(format!("{path}:{line} is passed over: write NAME=value"));
            }
            for (name, line) in file.names().filter(|(name, _)| !known.contains(name)) {
                let next = match nearest(name, known.iter().copied()) {
                    _ if name == CONFIG => "only --config and the environment say which file counts".to_owned(),
                    Some(meant) => format!("did you mean {meant}?"),
                    None => "switchboard config show lists the settings".to_owned(),
                };
                warnings.push(format!("{path}:{line} sets {name}, which has no effect: {next}"));
            }
        }
        warnings
    }

    /// The command line with the values of the files as its defaults.
    pub(crate) fn apply(&self, command: Command) -> Result<Command, Failure> {
        for argument in all_arguments(&command) {
            if let Some((value, file)) = self.said_of(argument) {
                check(argument, value, &file.path)?;
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

    fn said_of(&self, argument: &Arg) -> Option<(&str, &File)> {
        argument.get_env()?.to_str().and_then(|name| self.get(name))
    }
}

pub(crate) fn wrong_value(name: &str, value: &str, source: &str, right: &str) -> Failure {
    let place = if source == name { name.to_owned() } else { format!("{source}: {name}") };
    Failure::usage(format!("{place} is {value:?}"), right)
}

/// Where settings and tokens of this user are.
pub(crate) fn folder() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    Some(Path::new(&home).join(".config/a2a-cli"))
}

/// A `.env` in the current folder that has settings of ours. A device or a pipe is not opened: it may have no end.
fn local() -> Option<PathBuf> {
    let path = std::env::current_dir().ok()?.join(".env");
    if !path.is_file() {
        return None;
    }
    let file = File::read(&path).ok()?;
    file.names().next().is_some().then_some(path)
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
    let Some(long) = argument.get_long() else { return Ok(()) };
    if matches!(argument.get_action(), ArgAction::SetTrue) {
        let name = argument.get_env().and_then(|name| name.to_str()).unwrap_or(long);
        let wrong = |right: String| wrong_value(name, value, &path.display().to_string(), &right);
        return boolean(value).map(drop).map_err(wrong);
    }
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
