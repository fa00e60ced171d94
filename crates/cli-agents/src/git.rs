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

#[derive(Clone)]
pub(super) struct Git {
    children: Children,
    user: Option<User>,
    /// At most so many bytes of output are kept.
    pub(super) limit: usize,
    /// One command at a time on each repository's list of worktrees: git does not lock it.
    worktree_lists: Arc<ExclusiveQueue<PathBuf>>,
    /// Folder of the worktrees. A broken worktree must not be taken for a folder of the repository around them.
    worktrees: PathBuf,
}

/// The repository or files that a command works on.
#[derive(Clone, Copy)]
pub(super) enum GitTarget<'a> {
    /// The repository that a folder is in.
    Folder(&'a Path),
    /// A repository, by its own folder: `.git`.
    Repository(&'a Path),
    /// The files of a worktree, apart from all settings.
    Isolated(&'a IsolatedGitDir),
}

/// A command that failed, for people.
#[derive(Debug, thiserror::Error)]
#[error("git {command}: {problem}")]
pub(super) struct GitError {
    pub(super) command: String,
    pub(super) problem: String,
}

impl Git {
    pub(super) fn new(
        children: Children,
        user: Option<User>,
        worktree_lists: Arc<ExclusiveQueue<PathBuf>>,
        worktrees: PathBuf,
    ) -> Self {
        Self { children, user, limit: 1 << 20, worktree_lists, worktrees }
    }

    /// Locks a repository's list of worktrees until this is dropped.
    pub(super) async fn lock_worktree_list(&self, repository: &Path) -> QueuePosition<PathBuf> {
        let position = self.worktree_lists.enqueue(repository.to_owned());
        position.wait().await;
        position
    }

    /// Runs a command. Of what it prints, whole lines are returned up to the limit.
    pub(super) async fn run<A: AsRef<OsStr>>(&self, at: GitTarget<'_>, args: &[A]) -> Result<String, GitError> {
        let (mut printed, mut is_cut) = (Vec::new(), false);
        let limit = self.limit;
        self.read(at, args, |bytes| {
            let room = limit.saturating_sub(printed.len());
            is_cut |= bytes.len() > room;
            printed.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        })
        .await?;
        if is_cut {
            printed.truncate(printed.iter().rposition(|byte| *byte == b'\n').unwrap_or_default());
        }
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }

    /// Runs a command that prints one word, such as the name of a commit.
    pub(super) async fn word<A: AsRef<OsStr>>(&self, at: GitTarget<'_>, args: &[A]) -> Result<String, GitError> {
        Ok(self.run(at, args).await?.trim().to_owned())
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
        let program = files::find_tool("git").map_err(failed)?;
        let (folder, own, variables) = at.parts();
        let settings = SAFE_SETTINGS.iter().map(OsString::from).chain(own.iter().cloned());
        let settings = settings.flat_map(|setting| [OsString::from("-c"), setting]);
        let command = ChildCommand {
            program,
            args: settings.chain(args.iter().map(|arg| arg.as_ref().to_owned())).collect(),
            env: self.environment(variables),
            cwd: folder.to_owned(),
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

    fn environment(&self, variables: Vec<(&'static str, OsString)>) -> Vec<(OsString, OsString)> {
        let home = match &self.user {
            Some(user) => Some(user.home.clone().into_os_string()),
            None => std::env::var_os("HOME"),
        };
        let mut all = vec![("PATH", std::env::var_os("PATH").unwrap_or_default())];
        all.extend(home.map(|home| ("HOME", home)));
        all.extend(SAFE_ENVIRONMENT.map(|(name, value)| (name, value.into())));
        all.push(("GIT_CEILING_DIRECTORIES", self.worktrees.clone().into_os_string()));
        all.extend(variables);
        all.into_iter().map(|(name, value)| (name.into(), value)).collect()
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
    /// The folder to run in, settings, and variables.
    fn parts(self) -> (&'a Path, &'a [OsString], Vec<(&'static str, OsString)>) {
        match self {
            GitTarget::Folder(folder) => (folder, &[], Vec::new()),
            GitTarget::Repository(folder) => (folder, &[], vec![("GIT_DIR", folder.into())]),
            GitTarget::Isolated(isolated) => (&isolated.files, &isolated.settings, isolated.environment()),
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
