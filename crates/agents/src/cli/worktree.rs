//! A copy of the repository for each task: a git worktree on a branch of its own.
//!
//! The copy of a conversation is always at the same place, because programs find their sessions by the folder they were
//! begun in. What a task changed is committed on its branch, told as a diff, and the copy is removed; the branch stays
//! where the policy says so. If the task is stopped on the way, that happens in the background; if the server is, the copy
//! stays for the next one to go on in.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use switchboard_adapters::cut;
use switchboard_engine::TaskHandle;

use super::git::{Git, GitError, Printed};
use super::locks::{Locks, Place};

/// Whether tasks work in copies, and what becomes of their branches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorktreePolicy {
    /// No copies.
    #[default]
    Off,
    /// A copy for each task; its branch is kept.
    Keep,
    /// A copy for each task; its branch is removed with it.
    Remove,
}

/// Where an agent's copies are, and which are in use.
pub(super) struct Copies {
    pub(super) home: PathBuf,
    in_use: Mutex<HashSet<PathBuf>>,
    /// One at a time at each place: a copy is put away before the conversation's next task makes its own there.
    places: Arc<Locks<PathBuf>>,
}

/// What a copy is made from.
pub(super) struct Wanted<'a> {
    /// The folder that would be worked in without a copy.
    pub(super) folder: &'a Path,
    /// The conversation, with whose it is.
    pub(super) context: &'a str,
    /// The task's branch.
    pub(super) branch: String,
    /// What to begin with, if not where the repository stands: an earlier task's branch.
    pub(super) start: Option<&'a str>,
    /// The commit an earlier turn of this task began with.
    pub(super) base: Option<&'a str>,
}

/// A copy.
pub(super) struct Worktree {
    git: Git,
    /// Who works in it; nobody, if it was left behind.
    task: Option<TaskHandle>,
    copies: Arc<Copies>,
    /// The repository it is a copy of.
    top: PathBuf,
    path: PathBuf,
    /// Held until it is put away.
    place: Option<Place<PathBuf>>,
    /// The folder to work in.
    pub(super) folder: PathBuf,
    pub(super) branch: String,
    /// The commit it began with.
    pub(super) base: String,
    keeps_branch: bool,
    /// Nobody will go on in it.
    is_given_up: bool,
    is_closed: bool,
}

/// What was changed in a copy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changes {
    /// As a patch; empty if nothing was changed.
    pub(super) patch: Printed,
    pub(super) files: Vec<String>,
}

impl Copies {
    pub(super) fn new(home: PathBuf) -> Arc<Self> {
        Arc::new(Self { home, in_use: Mutex::default(), places: Arc::default() })
    }

    fn place(&self, context: &str) -> PathBuf {
        // Context ids are the caller's words; a folder's name must not be.
        let digest = Sha256::digest(context.as_bytes());
        let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        self.home.join(name)
    }

    /// A task that was lost with an earlier server will go on in its copy.
    pub(super) fn claim(&self, context: &str) {
        self.in_use.lock().insert(self.place(context));
    }

    /// It will not; its copy is put away with the others that nobody uses.
    pub(super) fn give_up(&self, context: &str) {
        self.in_use.lock().remove(&self.place(context));
    }

    /// Puts away copies that nobody uses: an earlier server was killed before it could.
    pub(super) async fn sweep(self: &Arc<Self>, git: &Git, keeps_branch: bool) {
        let Ok(entries) = std::fs::read_dir(&self.home) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            if self.in_use.lock().contains(&path) {
                continue;
            }
            if let Some(mut found) = Worktree::found(git, self, path, keeps_branch).await {
                found.put_away().await;
            }
        }
    }
}

impl Worktree {
    /// Makes a copy, or takes up the one that an earlier turn of the task has left.
    ///
    /// # Errors
    /// What is in the way, for the caller.
    pub(super) async fn open(
        git: &Git,
        copies: &Arc<Copies>,
        wanted: Wanted<'_>,
        task: &TaskHandle,
        keeps_branch: bool,
    ) -> Result<Self, String> {
        let not_a_repository =
            || "this agent works in copies (worktree), and its folder is in no git repository".to_owned();
        let top = git.top(wanted.folder).await.ok_or_else(not_a_repository)?;
        let head =
            git.head(&top).await.ok_or("this agent works in copies (worktree), and its repository has no commit")?;
        let path = copies.place(wanted.context);
        let mut place = copies.places.line_up(path.clone());
        place.wait().await;
        copies.in_use.lock().insert(path.clone());
        let inside = wanted.folder.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
        let branch = wanted.branch;
        let mut worktree = Self {
            git: git.clone(),
            task: Some(task.clone()),
            copies: copies.clone(),
            top,
            folder: path.join(inside),
            path,
            place: Some(place),
            branch,
            base: wanted.base.map_or(head, str::to_owned),
            keeps_branch,
            is_given_up: false,
            is_closed: false,
        };
        if worktree.is_there().await {
            return Ok(worktree);
        }
        worktree.remove().await;
        worktree
            .add(wanted.start)
            .await
            .map_err(|error| format!("a copy of the repository could not be made: {error}"))?;
        Ok(worktree)
    }

    /// A copy that was left behind.
    async fn found(git: &Git, copies: &Arc<Copies>, path: PathBuf, keeps_branch: bool) -> Option<Self> {
        // Whoever has it by now will put it away.
        let place = Some(copies.places.line_up(path.clone())).filter(Place::is_held)?;
        if !path.join(".git").exists() {
            // Half made, or broken: git would not know it.
            if let Err(error) = std::fs::remove_dir_all(&path) {
                tracing::warn!(path = %path.display(), %error, "what is left of a copy could not be removed");
            }
            return None;
        }
        let common = git.run(&path, &["rev-parse", "--path-format=absolute", "--git-common-dir"]).await.ok()?;
        let branch = git.run(&path, &["branch", "--show-current"]).await.ok()?.text.trim().to_owned();
        let top = PathBuf::from(common.text.trim_end_matches('\n'));
        Some(Self {
            git: git.clone(),
            task: None,
            copies: copies.clone(),
            top,
            folder: path.clone(),
            path,
            place: Some(place),
            branch,
            // Where it began is not known any more: what the repository itself does not have is its own.
            base: "HEAD".to_owned(),
            keeps_branch,
            is_given_up: false,
            is_closed: false,
        })
    }

    /// Whether the copy is there already, on the right branch.
    async fn is_there(&self) -> bool {
        let current = self.git.run(&self.path, &["branch", "--show-current"]).await;
        self.path.join(".git").exists() && current.is_ok_and(|current| current.text.trim() == self.branch)
    }

    async fn add(&mut self, start: Option<&str>) -> Result<(), GitError> {
        let path = self.path.to_string_lossy().into_owned();
        let known = |name: &str| format!("refs/heads/{name}");
        let exists = async |name: &str| {
            self.git.run(&self.top, &["rev-parse", "--verify", "--quiet", &known(name)]).await.is_ok()
        };
        if exists(&self.branch).await {
            return self
                .git
                .run_on_copies(&self.top, &["worktree", "add", "--quiet", &path, &self.branch])
                .await
                .map(drop);
        }
        if let Some(start) = start
            && exists(start).await
            && let Ok(commit) = self.git.run(&self.top, &["rev-parse", &known(start)]).await
        {
            commit.text.trim().clone_into(&mut self.base);
        }
        let args = ["worktree", "add", "--quiet", "-b", &self.branch, &path, &self.base];
        self.git.run_on_copies(&self.top, &args).await.map(drop)
    }

    /// What was changed since the task began. Commits it on the branch.
    pub(super) async fn changes(&self, about: &str) -> Result<Changes, GitError> {
        self.commit(about).await?;
        let range = [self.base.as_str(), "HEAD"];
        let plain = ["diff", "--no-color", "--no-ext-diff", "--no-textconv"];
        let patch = self.git.run(&self.path, &[&plain[..], &range].concat()).await?;
        let names = self.git.run(&self.path, &[&plain[..], &["--name-only"], &range].concat()).await?;
        Ok(Changes { patch, files: names.text.lines().map(str::to_owned).collect() })
    }

    async fn commit(&self, about: &str) -> Result<(), GitError> {
        self.git.run(&self.path, &["add", "--all"]).await?;
        if self.git.run(&self.path, &["diff", "--cached", "--quiet"]).await.is_ok() {
            return Ok(());
        }
        let subject = cut(about.lines().next().unwrap_or_default().trim(), 72).into_owned();
        let subject = if subject.is_empty() { "Work of a task".to_owned() } else { subject };
        let who = ["-c", "user.name=Switchboard", "-c", "user.email=switchboard@localhost"];
        let commit = ["commit", "--quiet", "--no-verify", "-m", &subject];
        self.git.run(&self.path, &[&who[..], &commit].concat()).await.map(drop)
    }

    /// The copy has been removed. The branch goes too, unless it is kept and holds something, or the task goes on.
    pub(super) async fn close(mut self, task_goes_on: bool) {
        if !task_goes_on {
            self.drop_branch().await;
        }
        self.is_closed = true;
        self.copies.in_use.lock().remove(&self.path);
    }

    /// Nobody will go on in it: dropping it puts it away.
    pub(super) fn give_up(&mut self) {
        self.is_given_up = true;
    }

    /// Removes the copy of a task that was stopped, and then its branch.
    async fn put_away(&mut self) {
        if self.keeps_branch
            && self.path.exists()
            && let Err(error) = self.commit("Work of a task that was stopped").await
        {
            tracing::warn!(branch = %self.branch, %error, "what a task has changed could not be committed");
        }
        self.remove().await;
        self.drop_branch().await;
        self.copies.in_use.lock().remove(&self.path);
    }

    async fn drop_branch(&self) {
        let is_kept = self.keeps_branch && self.has_commits().await;
        if !self.branch.is_empty() && !is_kept {
            let removed = self.git.run_on_copies(&self.top, &["branch", "--quiet", "-D", &self.branch]).await;
            if let Err(error) = removed {
                tracing::debug!(%error, "a branch was not there to be removed");
            }
        }
    }

    async fn has_commits(&self) -> bool {
        let range = format!("{}..{}", self.base, self.branch);
        let count = self.git.run(&self.top, &["rev-list", "--count", &range]).await;
        count.is_ok_and(|count| count.text.trim() != "0")
    }

    /// Removes the copy.
    pub(super) async fn remove(&self) {
        let path = self.path.to_string_lossy().into_owned();
        let removed = self.git.run_on_copies(&self.top, &["worktree", "remove", "--force", "--force", &path]).await;
        if removed.is_err() && self.path.exists() {
            // Not known to git any more, or half made.
            if let Err(error) = std::fs::remove_dir_all(&self.path) {
                tracing::warn!(path, %error, "a copy of a repository could not be removed");
            }
        }
        let _ = self.git.run_on_copies(&self.top, &["worktree", "prune"]).await;
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        let is_stopped = self.task.as_ref().is_some_and(TaskHandle::is_canceled);
        if self.is_closed || !(is_stopped || self.is_given_up) {
            return;
        }
        self.is_closed = true;
        let mut left = Self {
            git: self.git.clone(),
            task: None,
            copies: self.copies.clone(),
            top: std::mem::take(&mut self.top),
            path: std::mem::take(&mut self.path),
            place: self.place.take(),
            folder: std::mem::take(&mut self.folder),
            branch: std::mem::take(&mut self.branch),
            base: std::mem::take(&mut self.base),
            keeps_branch: self.keeps_branch,
            is_given_up: true,
            is_closed: true,
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { left.put_away().await });
        }
    }
}
