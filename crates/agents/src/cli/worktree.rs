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

/// What the names of our branches begin with; no other is ever removed.
pub(super) const OURS: &str = "switchboard/";

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
        self.home.join(short_name(context.as_bytes()))
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
        // Only what can be a copy: another account may have put anything there.
        let copies = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let copies = copies.map(|entry| entry.path()).filter(|path| is_place(path));
        for path in copies {
            if self.in_use.lock().contains(&path) {
                continue;
            }
            if let Some(mut found) = Worktree::found(git, self, path, keeps_branch).await {
                found.put_away().await;
            }
        }
    }
}

/// A name for a folder that nobody chooses.
pub(super) fn short_name(of: &[u8]) -> String {
    Sha256::digest(of).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a folder is named like a copy.
fn is_place(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
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
        let is_own =
            worktree.path.join(".git").exists() && (wanted.base.is_some() || worktree.is_on_its_branch().await);
        if is_own {
            return Ok(worktree);
        }
        worktree.make_room().await?;
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
            git.remove_folder(&path).await;
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

    async fn is_on_its_branch(&self) -> bool {
        let current = self.git.run(&self.path, &["branch", "--show-current"]).await;
        current.is_ok_and(|current| current.text.trim() == self.branch)
    }

    /// Puts away what another task of the conversation has left at this place.
    async fn make_room(&self) -> Result<(), String> {
        if self.keeps_branch && self.path.join(".git").exists() {
            let branch = self.git.run(&self.path, &["branch", "--show-current"]).await;
            let branch = branch.map(|branch| branch.text.trim().to_owned()).unwrap_or_default();
            self.commit("Work of a task that was stopped").await.map_err(|error| {
                let path = self.path.display();
                format!("an earlier task has left work at {path} that cannot be committed: {error}. Look at it, and remove it")
            })?;
            if branch.is_empty() {
                // Nothing names the commit yet.
                let named = format!("{OURS}found-{}", uuid::Uuid::new_v4());
                let _ = self.git.run(&self.path, &["branch", &named, "HEAD"]).await;
            }
        }
        self.remove().await;
        Ok(())
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
                .run_on_copies(&self.top, &["worktree", "add", "--force", "--quiet", &path, &self.branch])
                .await
                .map(drop);
        }
        if let Some(start) = start
            && exists(start).await
            && let Ok(commit) = self.git.run(&self.top, &["rev-parse", &known(start)]).await
        {
            commit.text.trim().clone_into(&mut self.base);
        }
        let args = ["worktree", "add", "--force", "--quiet", "-b", &self.branch, &path, &self.base];
        self.git.run_on_copies(&self.top, &args).await.map(drop)
    }

    /// What was changed since the task began. Commits it on the branch.
    pub(super) async fn changes(&self, about: &str) -> Result<Changes, GitError> {
        self.commit(about).await?;
        if !self.branch.is_empty() && !self.is_on_its_branch().await {
            // The program works on a branch of its own, or on none.
            self.git.run(&self.path, &["branch", "--force", &self.branch, "HEAD"]).await?;
        }
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

    /// Whether what is in it can still be saved and should be. A copy without its `.git`, which only its program can have
    /// removed, is a copy no more.
    pub(super) fn is_worth_keeping(&self) -> bool {
        self.keeps_branch && self.path.join(".git").exists()
    }

    /// Nobody will go on in it: dropping it puts it away.
    pub(super) fn give_up(&mut self) {
        self.is_given_up = true;
    }

    /// Removes the copy of a task that was stopped, and then its branch.
    async fn put_away(&mut self) {
        if self.branch.is_empty() {
            // Nothing is checked out that could name what is committed.
            self.branch = format!("{OURS}found-{}", uuid::Uuid::new_v4());
        }
        if self.keeps_branch
            && self.path.join(".git").exists()
            && let Err(error) = self.changes("Work of a task that was stopped").await
        {
            let path = self.path.display();
            tracing::warn!(%path, branch = %self.branch, %error, "a copy holds work that cannot be committed, and is kept");
            return;
        }
        self.remove().await;
        self.drop_branch().await;
        self.copies.in_use.lock().remove(&self.path);
    }

    async fn drop_branch(&self) {
        let is_kept = self.keeps_branch && self.has_commits().await;
        if self.branch.starts_with(OURS) && !is_kept {
            let removed = self.git.run_on_copies(&self.top, &["branch", "--quiet", "-D", &self.branch]).await;
            if let Err(error) = removed {
                tracing::debug!(%error, "a branch was not there to be removed");
            }
        }
    }

    async fn has_commits(&self) -> bool {
        let range = format!("{}..{}", self.base, self.branch);
        let count = self.git.run(&self.top, &["rev-list", "--count", &range]).await;
        // What cannot be known is not thrown away.
        count.map_or(true, |count| count.text.trim() != "0")
    }

    /// Removes the copy.
    pub(super) async fn remove(&self) {
        let path = self.path.to_string_lossy().into_owned();
        let removed = self.git.run_on_copies(&self.top, &["worktree", "remove", "--force", "--force", &path]).await;
        if removed.is_err() {
            // Not known to git any more, half made, or broken by the program.
            if self.path.exists() {
                self.git.remove_folder(&self.path).await;
            }
            self.forget().await;
        }
    }

    /// Removes what the repository itself keeps about this copy. To prune would also forget copies of the user's own that
    /// are only out of reach now.
    async fn forget(&self) {
        let common = self.git.run(&self.top, &["rev-parse", "--path-format=absolute", "--git-common-dir"]).await;
        let Ok(common) = common else { return };
        let known = Path::new(common.text.trim_end_matches('\n')).join("worktrees");
        let link = self.path.join(".git");
        for entry in std::fs::read_dir(known).into_iter().flatten().flatten() {
            let points_to = std::fs::read_to_string(entry.path().join("gitdir")).unwrap_or_default();
            if Path::new(points_to.trim_end_matches('\n')) == link {
                self.git.remove_folder(&entry.path()).await;
            }
        }
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        let is_over = self.task.as_ref().is_some_and(TaskHandle::is_over);
        if self.is_closed || !(is_over || self.is_given_up) {
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
