//! Making an approved merge: the commit, then the branch, with the checkout if it has that branch.
//!
//! What was approved is a commit, not the branch that names it: nothing that was added to it since is merged.

use std::path::PathBuf;

use switchboard_a2a::TaskId;

use super::checkout_update::{CheckoutUpdate, MergeRecord};
use super::obstacle::Obstacle;
use super::plan::Plan;
use super::{PendingMerge, checked_out, short};
use crate::git::{Git, GitError, GitTarget, Repository};
use crate::worktree::Records;

/// A merge while it is made.
pub(super) struct BranchMerge {
    pub(super) git: Git,
    pub(super) records: Records<MergeRecord>,
    /// Of its record.
    pub(super) name: String,
    /// Where git directories of ours are made, and the one for what is worked out.
    pub(super) home: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) pending: PendingMerge,
    pub(super) task: TaskId,
}

impl BranchMerge {
    /// The commit that the branch stands at with the merge; none if it had the work already.
    pub(super) async fn run(self) -> Result<Option<String>, Obstacle> {
        let (git, target) = (self.git.clone(), self.pending.target.clone());
        let none = |problem: &str| GitError { command: "rev-parse".to_owned(), problem: problem.to_owned() };
        let repository = Repository::of(&git, &self.pending.folder).await.map_err(|missing| none(missing.text()))?;
        let _alone = git.lock_worktree_list(&repository.own).await;
        let at = GitTarget::Repository(&repository.git_dir);
        let was = self.finish_earlier().await?;
        let from = git.commit(at, &target).await.ok_or_else(|| Obstacle::NoBranch(short(&target).to_owned()))?;
        let to = self.commit(&repository, &from).await?;
        if let Some(to) = &to {
            let is_checked_out = checked_out(&git, &repository).await.as_ref() == Some(&target);
            match is_checked_out {
                true => self.update_checkout(repository, &from, to).await?,
                false => self.update_branch(at, &from, to).await?,
            }
        }
        self.remove_branch().await;
        Ok(to.or(was))
    }

    /// Finishes what an earlier turn of the task has begun. Says the commit that it has brought.
    async fn finish_earlier(&self) -> Result<Option<String>, Obstacle> {
        let read = self.records.read(&self.name);
        let read = read.map_err(|error| GitError { command: "merge".to_owned(), problem: error.to_string() })?;
        let Some(record) = read else { return Ok(None) };
        let brings = record.is_begun.then(|| record.to.clone());
        self.update(record).finish().await?;
        Ok(brings)
    }

    async fn commit(&self, repository: &Repository, from: &str) -> Result<Option<String>, Obstacle> {
        let settings = self.git.harmless_settings(&repository.own).await;
        let how = (repository.object_format.as_str(), &settings[..]);
        let isolated = self.git.isolated(&self.folder, &repository.top, &repository.own, how).await?;
        let (plan, _) = Plan::of(&self.git, &isolated, from, &self.pending.tip).await?;
        let message = format!("Merge branch '{}' into {}", self.pending.branch, short(&self.pending.target));
        let commit = plan.commit(&self.git, &isolated, (from, &self.pending.tip), &message).await;
        self.git.remove_folder(&self.folder).await;
        commit
    }

    async fn update_checkout(&self, repository: Repository, from: &str, to: &str) -> Result<(), Obstacle> {
        let settings = self.git.harmless_settings(&repository.own).await;
        let record = MergeRecord {
            task: self.task.clone(),
            home: self.home.clone(),
            repository: repository.own,
            git_dir: repository.git_dir,
            top: repository.top,
            object_format: repository.object_format,
            settings,
            target: self.pending.target.clone(),
            from: from.to_owned(),
            to: to.to_owned(),
            is_begun: false,
        };
        self.update(record).run().await
    }

    fn update(&self, record: MergeRecord) -> CheckoutUpdate {
        let (git, records) = (self.git.clone(), self.records.clone());
        CheckoutUpdate { git, records, name: self.name.clone(), record }
    }

    /// Moves a branch that no checkout has.
    async fn update_branch(&self, at: GitTarget<'_>, from: &str, to: &str) -> Result<(), Obstacle> {
        let target = &self.pending.target;
        let other = self.git.word(at, &["for-each-ref", "--format=%(worktreepath)", target]).await?;
        if !other.is_empty() {
            return Err(Obstacle::Elsewhere(PathBuf::from(other)));
        }
        let moved = self.git.run(at, &["update-ref", "-m", "merge: approved work of a task", target, to, from]).await;
        moved.map(drop).map_err(|_| Obstacle::Moved(short(target).to_owned()))
    }

    /// Removes the task's branch, unless it has got something else since.
    async fn remove_branch(&self) {
        let PendingMerge { branch, tip, folder, .. } = &self.pending;
        let args = ["update-ref", "-d", &format!("refs/heads/{branch}"), tip];
        if let Err(error) = self.git.run(GitTarget::Folder(folder), &args).await {
            tracing::debug!(%error, branch, "a branch that is merged is kept");
        }
    }
}
