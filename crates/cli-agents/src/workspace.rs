//! The workspace of a turn: the agent's folder, or a repository that the request chose within the allowed ones.

mod repository;

use std::path::{Path, PathBuf};

use switchboard_engine::{BlockingTask, CallError, Stopped, TaskHandle};

use super::process::TreeExit;
use super::repository_locks::{RepositoryLock, RepositoryLocks};
use super::sessions::ConversationRecord;
use super::settings::Settings;
use super::task_reporter::TaskReporter;
use super::worktree::Worktree;

/// A waiting task reports at most so many open questions of its blockers: its own log must not grow without end because
/// another task's does.
const MOST_QUESTIONS: u32 = 20;

/// The folder that a turn works in: a worktree, or the chosen folder with its repository lock.
pub(super) struct Workspace {
    pub(super) chosen: ChosenFolder,
    /// The folder to work in: the chosen one, or the one in the worktree.
    pub(super) folder: PathBuf,
    pub(super) worktree: Option<Worktree>,
    lock: Option<RepositoryLock>,
}

/// A folder that cannot be worked in.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WorkspaceError {
    /// The request may not choose at all.
    #[error("metadata.repo: this agent does not let requests choose a repository; leave it out")]
    NoChoice,
    /// What it chose is outside, or not there: which of the two is not for the caller to know.
    #[error("metadata.repo: {0:?} is not a folder within those that this agent may work in")]
    NotAllowed(String),
    /// What it chose belongs to git.
    #[error("metadata.repo: {0:?} is where git keeps a repository; name the folder with the repository's files")]
    OfGit(String),
    /// What it chose is above repositories, and so above what git keeps in each of them.
    #[error("metadata.repo: {0:?} is no repository but may hold some; name a repository within it")]
    Above(String),
    /// What an earlier request of the conversation chose cannot be chosen any more.
    #[error(
        "this conversation worked in {0:?}, which is not among the folders that this agent may work in any more; begin a \
         new conversation"
    )]
    NoLonger(String),
    /// The agent's own folder is missing.
    #[error("the folder of this agent cannot be worked in: {0}")]
    Missing(String),
    /// While the task waited, the folder was replaced.
    #[error("the folder to work in was moved while the task waited: send the message again")]
    Moved,
}

/// The folder for a turn.
pub(super) struct ChosenFolder {
    /// As a request named it, this one or an earlier one of the conversation.
    pub(super) repo: Option<String>,
    /// Canonical; if a request named it, a repository or a plain folder within the allowed ones.
    pub(super) folder: PathBuf,
}

impl ChosenFolder {
    /// Where a request asks to work; else where its conversation does.
    pub(super) async fn find(
        settings: &Settings,
        requested: Option<&str>,
        past: Option<&ConversationRecord>,
    ) -> Result<Self, WorkspaceError> {
        let earlier = past.and_then(|past| past.metadata.repo.clone()).filter(|_| requested.is_none());
        let repo = requested.map(str::to_owned).or_else(|| earlier.clone());
        let (cwd, repos, name) = (settings.cwd.clone(), settings.repos.clone(), repo.clone());
        let known = past.and_then(|past| past.folder.clone());
        // It may look through many folders.
        let found = tokio::task::spawn_blocking(move || match name {
            Some(name) => find_allowed(&repos, &name, known.as_deref()),
            None => find_own(&cwd),
        });
        let found = found.await.unwrap_or_else(|error| Err(WorkspaceError::Missing(error.to_string())));
        match (found, earlier) {
            (Ok(folder), _) => Ok(Self { repo, folder }),
            (Err(error @ WorkspaceError::Missing(_)), _) | (Err(error), None) => Err(error),
            // The request has named nothing that it could leave out.
            (Err(_), Some(name)) => Err(WorkspaceError::NoLonger(name)),
        }
    }

    /// Whether a conversation has worked here.
    pub(super) fn is_where(&self, past: &ConversationRecord) -> bool {
        match &past.folder {
            // The agent's own folder is its operator's to move.
            _ if self.repo.is_none() => true,
            Some(folder) => *folder == self.noted(),
            None => self.repo == past.metadata.repo,
        }
    }

    /// The note if the name that the conversation used leads to another folder now.
    pub(super) fn moved_since(&self, past: &ConversationRecord) -> Option<String> {
        let name = self.repo.as_ref().filter(|_| self.repo == past.metadata.repo && !self.is_where(past))?;
        Some(format!("{name:?} leads to another folder than before in this conversation; a new session begins there."))
    }

    /// The folder as it is noted for the conversation.
    pub(super) fn noted(&self) -> String {
        self.folder.to_string_lossy().into_owned()
    }
}

fn find_own(cwd: &Path) -> Result<PathBuf, WorkspaceError> {
    let shown = cwd.display();
    let folder = cwd.canonicalize().map_err(|error| WorkspaceError::Missing(format!("{shown}: {error}")))?;
    let is_folder = folder.is_dir();
    is_folder.then_some(folder).ok_or_else(|| WorkspaceError::Missing(format!("{shown} is not a folder")))
}

/// `known` is where the conversation has worked before.
fn find_allowed(repos: &[PathBuf], repo: &str, known: Option<&str>) -> Result<PathBuf, WorkspaceError> {
    if repos.is_empty() {
        return Err(WorkspaceError::NoChoice);
    }
    let roots: Vec<PathBuf> = repos.iter().filter_map(|root| root.canonicalize().ok()).collect();
    let within = |folder: &Path| roots.iter().any(|root| folder.starts_with(root));
    let candidates = roots.iter().filter_map(|root| root.join(repo).canonicalize().ok());
    let mut problem = None;
    for folder in candidates.filter(|folder| within(folder) && folder.is_dir()) {
        if repository::is_of_git(&folder) {
            problem.get_or_insert_with(|| WorkspaceError::OfGit(repo.to_owned()));
        } else if is_above(&folder, &roots, known) {
            problem.get_or_insert_with(|| WorkspaceError::Above(repo.to_owned()));
        } else {
            return Ok(folder);
        }
    }
    Err(problem.unwrap_or_else(|| WorkspaceError::NotAllowed(repo.to_owned())))
}

/// Whether repositories may be below a folder that is part of none.
fn is_above(folder: &Path, roots: &[PathBuf], known: Option<&str>) -> bool {
    if repository::top(folder).is_some() {
        return false;
    }
    // Those that a conversation has made in its folder do not shut it out.
    let is_known = known == Some(&*folder.to_string_lossy());
    roots.iter().any(|root| root == folder) || (!is_known && repository::may_hold_repositories(folder))
}

/// Whether a chosen folder now leads elsewhere: it may have been replaced by a symlink while the task waited.
pub(super) fn is_elsewhere(folder: &Path) -> bool {
    folder.canonicalize().ok().as_deref() != Some(folder)
}

impl Workspace {
    /// Queues a recovered turn for its folder, before other turns are.
    pub(super) fn enqueue(
        settings: &Settings,
        repositories: &RepositoryLocks,
        folder: &Path,
        task: &TaskHandle,
    ) -> Option<RepositoryLock> {
        settings.repo_lock.then(|| repositories.enqueue(repository::top(folder).unwrap_or(folder), task))
    }

    /// Waits for the repository lock of the folder, from the position that was `kept` for it if there is one, and
    /// reports the blocker meanwhile. None if the task was rejected, because it would wait for one that waits for it.
    pub(super) async fn open(
        settings: &Settings,
        repositories: &RepositoryLocks,
        chosen: ChosenFolder,
        kept: Option<RepositoryLock>,
        task: &TaskHandle,
    ) -> Result<Option<Self>, CallError> {
        let folder = chosen.folder.clone();
        if !settings.repo_lock {
            return Ok(Some(Self { chosen, folder, worktree: None, lock: None }));
        }
        let top = repository::top(&folder).unwrap_or(&folder);
        let kept = kept.filter(|lock| lock.is_for(top));
        let lock = kept.unwrap_or_else(|| repositories.enqueue(top, task));
        if lock.ahead().is_some() {
            if task.rejects_deadlock(&lock.tasks_ahead(), "this repository").await? {
                return Ok(None);
            }
            task.release_permit_while(wait(&lock, task)).await??;
            // What it waited for must not stand there as if it still did.
            task.status("The repository is free.").await?;
        }
        Ok(Some(Self { chosen, folder, worktree: None, lock: Some(lock) }))
    }

    /// A worktree needs no repository lock.
    pub(super) fn in_worktree(worktree: Worktree, chosen: ChosenFolder) -> Self {
        Self { chosen, folder: worktree.folder.clone(), worktree: Some(worktree), lock: None }
    }

    /// A child works here from now on: the locks are held until its process tree has exited.
    pub(super) fn hold_until_exit(&mut self, tree_exit: TreeExit) {
        if let Some(lock) = &mut self.lock {
            lock.hold_until_exit(tree_exit.clone());
        }
        if let Some(lock) = self.worktree.as_mut().and_then(|worktree| worktree.position.as_mut()) {
            lock.hold_until_exit(tree_exit);
        }
    }

    /// Publishes the diff of a canceled task, as far as the cancellation leaves time for that.
    pub(super) async fn publish_changes(&mut self, report: &mut TaskReporter, about: &str) {
        let Some(mut worktree) = self.worktree.take() else { return };
        let about = about.to_owned();
        // In its own task: git is never stopped halfway. If this future is dropped, the worktree is removed after it.
        let committing = tokio::spawn(async move {
            let changes = worktree.changes(&about).await;
            (worktree, changes)
        });
        let Ok((worktree, changes)) = committing.await else { return };
        match changes {
            Ok(changes) => drop(report.changes(&worktree, changes).await),
            Err(error) => {
                tracing::warn!(%error, branch = worktree.branch(), "what a stopped task has changed cannot be told");
            }
        }
        self.worktree = Some(worktree);
    }
}

/// Waits for the repository lock. Reports the blocker, and again when it is another task, or when it opens or closes a
/// question.
async fn wait(lock: &RepositoryLock, task: &TaskHandle) -> Result<(), Stopped> {
    let mut told: Option<BlockingTask> = None;
    let mut questions = 0;
    loop {
        let mut changed = std::pin::pin!(lock.queue().changed());
        changed.as_mut().enable();
        let Some(mut ahead) = lock.ahead() else { return Ok(()) };
        let blocker = ahead.blocker.clone();
        let is_told = told.as_ref().is_some_and(|told| told.asks_since.is_some());
        if questions >= MOST_QUESTIONS && !is_told {
            ahead.blocker.asks_since = None;
        }
        if told.as_ref() != Some(&ahead.blocker) {
            questions += u32::from(ahead.blocker.asks_since.is_some());
            task.blocked_by(ahead.blocker.clone(), |shown| ahead.text(shown)).await?;
            told = Some(ahead.blocker);
        }
        // Operators need the answer command of every question, also of those that are not reported any more.
        task.note_blocker(blocker);
        changed.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_from_before_the_folder_was_noted_go_by_the_name() {
        let chosen = |repo: Option<&str>| ChosenFolder { repo: repo.map(str::to_owned), folder: PathBuf::from("/r/a") };
        let old: ConversationRecord = serde_json::from_str(r#"{"facts":{"cli":"x","repo":"a"}}"#).unwrap();
        assert!(chosen(Some("a")).is_where(&old) && !chosen(Some("b")).is_where(&old));
        let new = ConversationRecord { folder: Some("/r/a".to_owned()), ..old };
        assert!(chosen(Some("./a")).is_where(&new), "another name for the same folder");
        let elsewhere = ConversationRecord { folder: Some("/r/b".to_owned()), ..new };
        assert!(!chosen(Some("a")).is_where(&elsewhere));
        assert_eq!(chosen(Some("./a")).moved_since(&elsewhere), None, "the request itself moves");
        let own = ConversationRecord { metadata: crate::sessions::AgentMetadata::default(), ..elsewhere };
        assert!(chosen(None).is_where(&own), "the operator moved the agent's folder");
    }
}
