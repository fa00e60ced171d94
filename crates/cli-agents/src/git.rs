//! Git, run like every other child: no shell, no hooks, no prompts.
//!
//! A program can write to its worktree, and mostly to the repository's settings too, and git runs what these name:
//! filters, monitors, diff programs. So none of these are used here. Commands on the files of a worktree use an
//! [`IsolatedGitDir`] without those settings; commands on a repository touch no files.

mod files;
mod isolated;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use switchboard_admission::{ExclusiveQueue, QueuePosition};

use super::process::{Child, ChildCommand, Children, Output, OutputLimits, User};

pub(super) use isolated::IsolatedGitDir;

/// How long one command may take: a checkout of a large repository fits in it.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);

/// Settings for every command, which override a repository's own: nothing runs, nothing is fetched, and any file owner
/// is accepted.
const SAFE_SETTINGS: [&str; 7] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "safe.directory=*",
    "commit.gpgSign=false",
    "maintenance.auto=false",
    "protocol.allow=never",
];

/// The same in the environment. What is missing in a repository could be fetched by a command that it names.
const SAFE_ENVIRONMENT: [(&str, &str); 5] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("LC_ALL", "C.UTF-8"),
];

/// Runs git for an agent.
#[derive(Clone)]
pub(super) struct Git {
    children: Children,
    user: Option<User>,
    /// At most so many bytes of output are kept.
    pub(super) limit: usize,
    /// One command at a time on each repository's list of worktrees: git does not lock it.
    worktree_lists: Arc<ExclusiveQueue<PathBuf>>,
    /// Folder of the worktrees. A broken worktree must not be taken for a folder of the repository around them.
    copies: PathBuf,
}

/// The repository or files that a command works on.
#[derive(Clone, Copy)]
pub(super) enum GitTarget<'a> {
    /// The repository that a folder is in.
    Folder(&'a Path),
    /// A repository, by its own folder: `.git`.
    Repository(&'a Path),
    /// The files of a copy, apart from all settings.
    Isolated(&'a IsolatedGitDir),
}

/// What a command printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CommandOutput {
    pub(super) bytes: Vec<u8>,
    /// There was more than the limit.
    pub(super) is_cut: bool,
}

/// A command that failed, for people.
#[derive(Debug, thiserror::Error)]
#[error("git {command}: {problem}")]
pub(super) struct GitError {
    pub(super) command: String,
    pub(super) problem: String,
}

impl CommandOutput {
    /// As text, whole lines only.
    pub(super) fn text(&self) -> String {
        let whole = match self.is_cut {
            true => self.bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or_default(),
            false => self.bytes.len(),
        };
        String::from_utf8_lossy(self.bytes.get(..whole).unwrap_or_default()).into_owned()
    }
}

impl Git {
    pub(super) fn new(
        children: Children,
        user: Option<User>,
        worktree_lists: Arc<ExclusiveQueue<PathBuf>>,
        copies: PathBuf,
    ) -> Self {
        Self { children, user, limit: 1 << 20, worktree_lists, copies }
    }

    /// Locks a repository's list of worktrees until this is dropped.
    pub(super) async fn lock_worktree_list(&self, repository: &Path) -> QueuePosition<PathBuf> {
        let position = self.worktree_lists.enqueue(repository.to_owned());
        position.wait().await;
        position
    }

    /// Runs a command.
    pub(super) async fn run<A: AsRef<OsStr>>(&self, at: GitTarget<'_>, args: &[A]) -> Result<CommandOutput, GitError> {
        let mut printed = CommandOutput::default();
        let limit = self.limit;
        self.read(at, args, |bytes| {
            let room = limit.saturating_sub(printed.bytes.len());
            printed.is_cut |= bytes.len() > room;
            printed.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        })
        .await?;
        Ok(printed)
    }

    /// Runs a command that prints one word, such as the name of a commit.
    pub(super) async fn word<A: AsRef<OsStr>>(&self, at: GitTarget<'_>, args: &[A]) -> Result<String, GitError> {
        Ok(self.run(at, args).await?.text().trim().to_owned())
    }

    /// Runs a command and takes what it prints as it comes.
    pub(super) async fn read<A: AsRef<OsStr>>(
        &self,
        at: GitTarget<'_>,
        args: &[A],
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), GitError> {
        let name = args.first().map(|name| name.as_ref().to_string_lossy().into_owned()).unwrap_or_default();
        let failed = |problem: String| GitError { command: name.clone(), problem };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = files::find_tool("git").map_err(failed)?;
        let settings = SAFE_SETTINGS.iter().map(OsString::from).chain(at.settings());
        let settings = settings.flat_map(|setting| [OsString::from("-c"), setting]);
        let command = ChildCommand {
            program,
            args: settings.chain(args.iter().map(|arg| arg.as_ref().to_owned())).collect(),
            env: self.environment(at, path),
            cwd: at.folder().to_owned(),
            user: self.user.clone(),
            input: false,
            label: "git".to_owned(),
        };
        let limits = OutputLimits { line: 0, stderr: 8 << 10, output: u64::MAX };
        let child = self.children.spawn(command, limits).await.map_err(|error| failed(error.to_string()))?;
        match tokio::time::timeout(COMMAND_TIMEOUT, read_all(child, &mut take)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(problem)) => Err(failed(problem)),
            Err(_) => Err(failed(format!("did not end within {} s", COMMAND_TIMEOUT.as_secs()))),
        }
    }

    fn environment(&self, at: GitTarget<'_>, path: OsString) -> Vec<(OsString, OsString)> {
        let home = match &self.user {
            Some(user) => Some(user.home.clone().into_os_string()),
            None => std::env::var_os("HOME"),
        };
        let mut all: Vec<(OsString, OsString)> = vec![("PATH".into(), path)];
        all.extend(home.map(|home| ("HOME".into(), home)));
        all.extend(SAFE_ENVIRONMENT.map(|(name, value)| (name.into(), value.into())));
        all.push(("GIT_CEILING_DIRECTORIES".into(), self.copies.clone().into_os_string()));
        all.extend(at.environment().into_iter().map(|(name, value)| (name.into(), value)));
        all
    }

    /// The commit that a name stands for in a repository; nothing if it has none.
    pub(super) async fn commit(&self, at: GitTarget<'_>, name: &str) -> Option<String> {
        self.word(at, &["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{name}^{{commit}}")])
            .await
            .ok()
    }

    /// The commit that the repository of a folder stands at; nothing if it has none yet.
    pub(super) async fn head(&self, folder: &Path) -> Option<String> {
        self.commit(GitTarget::Folder(folder), "HEAD").await
    }
}

impl<'a> GitTarget<'a> {
    fn folder(self) -> &'a Path {
        match self {
            GitTarget::Folder(folder) | GitTarget::Repository(folder) => folder,
            GitTarget::Isolated(isolated) => &isolated.files,
        }
    }

    fn settings(self) -> Vec<OsString> {
        match self {
            GitTarget::Folder(_) | GitTarget::Repository(_) => Vec::new(),
            GitTarget::Isolated(isolated) => isolated.settings.clone(),
        }
    }

    fn environment(self) -> Vec<(&'static str, OsString)> {
        match self {
            GitTarget::Folder(_) => Vec::new(),
            GitTarget::Repository(folder) => vec![("GIT_DIR", folder.into())],
            GitTarget::Isolated(isolated) => isolated.environment(),
        }
    }
}

async fn read_all(mut child: Child, take: &mut impl FnMut(&[u8])) -> Result<(), String> {
    while let Some(bytes) = child.next_bytes().await {
        take(&bytes);
    }
    match child.next().await {
        Output::Ended(exit) if exit.code != Some(0) => Err(exit.describe()),
        _ => Ok(()),
    }
}
