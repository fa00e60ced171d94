//! Bringing a merge into the checkout that has its branch: files, index, branch, in this order and each idempotent.
//!
//! A record outside of the repository is written before anything is touched and removed when all is done, so that after a
//! kill at any moment the merge is finished, or undone if its task has ended. Meanwhile git's own `index.lock` is held: no
//! other git command changes the checkout. It is a link that says whose it is.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use switchboard_a2a::TaskId;

use super::changed_paths::{Files, changed_paths};
use super::clean_check;
use super::obstacle::Obstacle;
use crate::git::{Git, GitError, GitTarget, IsolatedGitDir};
use crate::worktree::Records;

/// A merge that is on its way into a checkout.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MergeRecord {
    pub(super) task: TaskId,
    /// The folder that a git directory of ours is made in.
    pub(super) home: PathBuf,
    /// The repository's own folder, and that of the checkout.
    pub(super) repository: PathBuf,
    pub(super) git_dir: PathBuf,
    /// The top folder of the checkout.
    pub(super) top: PathBuf,
    pub(super) object_format: String,
    pub(super) settings: Vec<String>,
    /// The branch that is checked out, `refs/heads/…`.
    pub(super) target: String,
    /// The commit that it stands at, and the one that it is to stand at.
    pub(super) from: String,
    pub(super) to: String,
    /// The checkout was clean, and something of it may have been changed by now.
    pub(super) is_begun: bool,
}

pub(crate) struct CheckoutUpdate {
    pub(super) git: Git,
    pub(super) records: Records<MergeRecord>,
    /// Of the record, the lock, and our git directory.
    pub(super) name: String,
    pub(super) record: MergeRecord,
}

impl CheckoutUpdate {
    /// Does all of it, or refuses before anything is touched.
    pub(super) async fn run(mut self) -> Result<(), Obstacle> {
        self.write()?;
        let begun = self.begin().await;
        match begun {
            Ok(()) => self.finish().await,
            Err(obstacle) => {
                self.clean_up().await;
                Err(obstacle)
            }
        }
    }

    async fn begin(&mut self) -> Result<(), Obstacle> {
        self.lock().await?;
        let isolated = self.isolated().await?;
        let (from, to) = (&self.record.from, &self.record.to);
        let changed = changed_paths(&self.git, GitTarget::Isolated(&isolated), from, to).await?;
        clean_check::check(&self.git, &isolated, &self.record, &changed).await?;
        if self.target().await? != *from {
            return Err(Obstacle::Moved(self.record.target.clone()));
        }
        self.record.is_begun = true;
        Ok(self.write()?)
    }

    /// Goes on with what was begun, wherever it was left.
    pub(super) async fn finish(&self) -> Result<(), Obstacle> {
        let MergeRecord { from, to, target, is_begun, .. } = &self.record;
        if !is_begun {
            self.clean_up().await;
            return Ok(());
        }
        if self.target().await? == *from {
            self.lock().await?;
            self.change(from, to).await?;
            let about = "merge: approved work of a task";
            let moved = ["update-ref", "-m", about, target, to, from];
            if let Err(error) = self.git.run(GitTarget::Repository(&self.record.git_dir), &moved).await {
                tracing::debug!(%error, branch = %target, "a branch did not take a merge");
            }
        }
        if self.target().await? == *to {
            self.clean_up().await;
            return Ok(());
        }
        self.undo().await?;
        Err(Obstacle::Moved(target.clone()))
    }

    /// Puts the checkout back to where it was, unless the branch has the merge already.
    pub(super) async fn undo(&self) -> Result<(), Obstacle> {
        let MergeRecord { from, to, is_begun, .. } = &self.record;
        if *is_begun && self.target().await? != *to {
            self.lock().await?;
            // What is half written is known by what it was to become.
            self.change(from, to).await?;
            self.change(to, from).await?;
        }
        self.clean_up().await;
        Ok(())
    }

    /// Changes files and index from one commit to another, as far as they are not there yet.
    async fn change(&self, from: &str, to: &str) -> Result<(), GitError> {
        let isolated = self.isolated().await?;
        let (git, record) = (&self.git, &self.record);
        Files { git, isolated: &isolated, top: &record.top }.change(from, to).await?;
        let at = GitTarget::Isolated(&isolated);
        let (index, next) = (record.git_dir.join("index"), record.git_dir.join(format!("index.{}", self.name)));
        let failed = |problem: String| GitError { command: "read-tree".to_owned(), problem };
        if !git.copy_file(&index, &isolated.index()).await {
            return Err(failed("the index of the checkout cannot be read".to_owned()));
        }
        git.run(at, &["read-tree", "-i", "-m", from, to]).await?;
        // It fails if a file is not as the index has it.
        let _ = git.run(at, &["update-index", "-q", "--refresh"]).await;
        if !git.copy_file(&isolated.index(), &next).await {
            return Err(failed("the index of the checkout cannot be written".to_owned()));
        }
        git.replace_file(&next, &index).await.map_err(failed)
    }

    async fn isolated(&self) -> Result<IsolatedGitDir, GitError> {
        let MergeRecord { top, repository, object_format, settings, .. } = &self.record;
        self.git.isolated(&self.own(), top, repository, (object_format, settings)).await
    }

    fn own(&self) -> PathBuf {
        self.record.home.join(format!("{}.merge.git", self.name))
    }

    /// The commit that the branch stands at; nothing if there is no such branch. What git cannot say now is an error: a merge
    /// must not be undone because of it.
    async fn target(&self) -> Result<String, GitError> {
        let args = ["for-each-ref", "--format=%(objectname)", &self.record.target];
        self.git.word(GitTarget::Repository(&self.record.git_dir), &args).await
    }

    async fn lock(&self) -> Result<(), Obstacle> {
        let lock = self.lock_file();
        if self.is_own(&lock) || self.git.create_link(&self.marker(), &lock).await {
            return Ok(());
        }
        Err(Obstacle::Locked(lock))
    }

    fn lock_file(&self) -> PathBuf {
        self.record.git_dir.join("index.lock")
    }

    fn marker(&self) -> String {
        format!("switchboard-merge-{}", self.name)
    }

    fn is_own(&self, lock: &Path) -> bool {
        std::fs::read_link(lock).is_ok_and(|target| target == Path::new(&self.marker()))
    }

    async fn clean_up(&self) {
        self.git.remove_folder(&self.own()).await;
        let lock = self.lock_file();
        if self.is_own(&lock) {
            self.git.remove_folder(&lock).await;
        }
        if self.is_own(&lock) {
            // Why has been logged. It is tried again.
            return;
        }
        if let Err(error) = self.records.remove(&self.name) {
            tracing::warn!(merge = %self.name, %error, "the record of a merge could not be removed");
        }
    }

    fn write(&self) -> Result<(), GitError> {
        let failed = |error: std::io::Error| GitError { command: "merge".to_owned(), problem: error.to_string() };
        self.records.write(&self.name, &self.record).map_err(failed)
    }
}
