//! Git, run like every other child: no shell, no hooks, no questions.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::locks::Locks;
use super::process::{ChildCommand, Children, Output, OutputLimits, User};

/// How long one command may take: a large repository is copied within it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Settings for every command: nothing of the repository's own may run, and whose files they are does not matter.
const QUIET: [&str; 10] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.quotePath=false",
    "-c",
    "safe.directory=*",
    "-c",
    "commit.gpgSign=false",
];

/// Runs git for an agent.
#[derive(Clone)]
pub(super) struct Git {
    pub(super) children: Children,
    pub(super) user: Option<User>,
    /// At most so many bytes of output are kept.
    pub(super) limit: u64,
    /// One command at a time per repository, of those that change or read its list of copies: git does not expect two.
    pub(super) lists: Arc<Locks<PathBuf>>,
    /// Where copies are. One that is broken must not be taken for a folder of the repository around them all.
    pub(super) copies: PathBuf,
}

/// What a command printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Printed {
    pub(super) text: String,
    /// There was more than the limit.
    pub(super) is_cut: bool,
}

/// A command that failed, for people.
#[derive(Debug, thiserror::Error)]
#[error("git {command}: {problem}")]
pub(super) struct GitError {
    command: String,
    problem: String,
}

impl Git {
    pub(super) fn new(children: Children, user: Option<User>, lists: Arc<Locks<PathBuf>>, copies: PathBuf) -> Self {
        Self { children, user, limit: 1 << 20, lists, copies }
    }

    /// Runs a command that has to do with the copies of a repository, whose top folder or `.git` this is.
    pub(super) async fn run_on_copies(&self, top: &Path, args: &[&str]) -> Result<Printed, GitError> {
        let key = if top.ends_with(".git") { top.parent().unwrap_or(top) } else { top };
        let mut place = self.lists.line_up(key.to_owned());
        place.wait().await;
        self.run(top, args).await
    }

    /// Runs a command in a folder.
    pub(super) async fn run(&self, folder: &Path, args: &[&str]) -> Result<Printed, GitError> {
        let failed =
            |problem: String| GitError { command: args.first().copied().unwrap_or_default().to_owned(), problem };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.is_file());
        let program = program.ok_or_else(|| failed("git is not installed on this machine".to_owned()))?;
        let command = ChildCommand {
            program,
            args: QUIET.iter().chain(args).map(OsString::from).collect(),
            env: self.environment(path),
            cwd: folder.to_owned(),
            user: self.user.clone(),
            input: false,
            label: "git".to_owned(),
        };
        let limits = OutputLimits { line: 1 << 20, stderr: 8 << 10, output: u64::MAX };
        let child = self.children.spawn(command, limits).await.map_err(|error| failed(error.to_string()))?;
        match tokio::time::timeout(PATIENCE, self.read(child)).await {
            Ok(Ok(printed)) => Ok(printed),
            Ok(Err(problem)) => Err(failed(problem)),
            Err(_) => Err(failed(format!("did not end within {} s", PATIENCE.as_secs()))),
        }
    }

    async fn read(&self, mut child: super::process::Child) -> Result<Printed, String> {
        let mut printed = Printed::default();
        loop {
            match child.next().await {
                Output::Line(line) if (printed.text.len() + line.len()) as u64 <= self.limit => {
                    printed.text.push_str(&line);
                    printed.text.push('\n');
                }
                Output::Line(_) | Output::TooLong { .. } => printed.is_cut = true,
                Output::Ended(exit) if exit.code == Some(0) => return Ok(printed),
                Output::Ended(exit) => return Err(exit.describe()),
                Output::Pause(_) | Output::Flood => {}
            }
        }
    }

    fn environment(&self, path: OsString) -> Vec<(OsString, OsString)> {
        let home = match &self.user {
            Some(user) => Some(user.home.clone().into_os_string()),
            None => std::env::var_os("HOME"),
        };
        let fixed = [("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0"), ("LC_ALL", "C.UTF-8")];
        let mut all: Vec<(OsString, OsString)> = vec![("PATH".into(), path)];
        all.extend(home.map(|home| ("HOME".into(), home)));
        all.extend(fixed.map(|(name, value)| (name.into(), value.into())));
        all.push(("GIT_CEILING_DIRECTORIES".into(), self.copies.clone().into_os_string()));
        all
    }

    /// Removes a folder as the account that git runs as, so that nothing is removed that this account could not.
    pub(super) async fn remove_folder(&self, path: &Path) {
        let removed = match &self.user {
            None => std::fs::remove_dir_all(path).map_err(|error| error.to_string()),
            Some(user) => self.remove_as(user, path).await,
        };
        if let Err(error) = removed {
            tracing::warn!(path = %path.display(), error, "a copy of a repository could not be removed");
        }
    }

    async fn remove_as(&self, user: &User, path: &Path) -> Result<(), String> {
        let command = ChildCommand {
            program: PathBuf::from("/bin/rm"),
            args: vec!["-rf".into(), "--".into(), path.as_os_str().to_owned()],
            env: Vec::new(),
            cwd: PathBuf::from("/"),
            user: Some(user.clone()),
            input: false,
            label: "rm".to_owned(),
        };
        let limits = OutputLimits { line: 4 << 10, stderr: 4 << 10, output: 64 << 10 };
        let mut child = self.children.spawn(command, limits).await.map_err(|error| error.to_string())?;
        let exit = child.leave(PATIENCE).await;
        if exit.code == Some(0) { Ok(()) } else { Err(exit.describe()) }
    }

    /// The top folder of the repository that a folder is in; nothing if it is in none.
    pub(super) async fn top(&self, folder: &Path) -> Option<PathBuf> {
        let printed = self.run(folder, &["rev-parse", "--show-toplevel"]).await.ok()?;
        Some(PathBuf::from(printed.text.trim_end_matches('\n'))).filter(|top| top.is_absolute())
    }

    /// The commit a repository stands at; nothing if it has none yet.
    pub(super) async fn head(&self, folder: &Path) -> Option<String> {
        let printed = self.run(folder, &["rev-parse", "--verify", "HEAD"]).await.ok()?;
        Some(printed.text.trim().to_owned())
    }
}
