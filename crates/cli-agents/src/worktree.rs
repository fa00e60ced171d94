//! Worktrees: a git worktree for each task.
//!
//! The worktree of a conversation is always at the same path, because programs find their sessions by the folder they
//! were started in. What a task changed is committed and published as a diff, and the worktree is removed; where the
//! policy says so, a branch names the commit. If the task is canceled without time for that, the worktree is committed
//! and removed in the background; if the server is killed, the worktree stays for recovery, or for the sweep if the
//! task has ended.
//!
//! A branch is never merged: whether the work is good is for its reader to say.

mod agent_worktrees;
mod checkout;
mod patch;
mod record;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use switchboard_engine::TaskHandle;

use super::git::{Git, GitError, GitTarget};
use super::process_bound_position::ProcessBoundPosition;
use checkout::Checkout;
use record::WorktreeRecord;

pub(super) use agent_worktrees::{AgentWorktrees, short_name};
pub(super) use patch::Patch;

/// Whether tasks work in worktrees, and whether their work is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorktreePolicy {
    /// No worktrees.
    #[default]
    Off,
    /// A worktree for each task; what was changed is kept as a branch.
    Keep,
    /// A worktree for each task; nothing of it is kept.
    Remove,
}

/// The prefix of our branches.
pub(super) const BRANCH_PREFIX: &str = "switchboard/";

/// What a worktree is made from.
pub(super) struct WorktreeRequest<'a> {
    /// The folder of the repository.
    pub(super) folder: &'a Path,
    /// The conversation, with whose it is.
    pub(super) context: &'a str,
    /// What the task's work is kept as; none if it is not kept.
    pub(super) branch: Option<String>,
    /// Branches of this task and of the conversation's earlier ones, the newest first: the first that is there is gone
    /// on with.
    pub(super) earlier: &'a [String],
    /// The commit that an earlier turn of this task began with.
    pub(super) base: Option<&'a str>,
    /// The commit that an earlier turn of this task left.
    pub(super) tip: Option<&'a str>,
}

pub(super) struct Worktree {
    checkout: Checkout,
    task: TaskHandle,
    /// Held until it is removed.
    pub(super) position: Option<ProcessBoundPosition<String>>,
    /// The folder to work in.
    pub(super) folder: PathBuf,
    /// What is in it has been committed as this.
    tip: Option<String>,
    /// It is not used again.
    is_given_up: bool,
    is_closed: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) patch: Patch,
    pub(super) files: Vec<String>,
}

impl Worktree {
    /// Makes a worktree, or recovers the one that the task was stopped in.
    pub(super) async fn open(
        git: &Git,
        worktrees: &Arc<AgentWorktrees>,
        wanted: WorktreeRequest<'_>,
        task: &TaskHandle,
    ) -> Result<Self, String> {
        let Repository { top, own, object_format, head } = Repository::of(git, wanted.folder).await?;
        let name = worktrees.name(wanted.context);
        let position = ProcessBoundPosition::new(worktrees.queue.enqueue(name.clone()));
        position.wait().await;
        let (home, records) = (worktrees.home.clone(), worktrees.records.clone());
        let inside = wanted.folder.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
        let with = |record: WorktreeRecord| Checkout {
            git: git.clone(),
            home: home.clone(),
            records: records.clone(),
            name: name.clone(),
            record,
        };
        let failed = |error: &dyn std::fmt::Display| format!("a worktree of the repository could not be made: {error}");
        let left = records.read(&name).map_err(|error| failed(&error))?.map(with);
        let checkout = match left {
            Some(left) if left.record.task == *task.id() && left.record.repository == own && left.is_usable() => left,
            left => {
                if let Some(left) = left {
                    make_room(&left).await?;
                }
                let at = GitTarget::Repository(&own);
                let (settings, start) = tokio::join!(git.harmless_settings(&own), start(git, at, &wanted));
                let start = start.unwrap_or(head);
                let base = match wanted.base {
                    Some(base) => git.commit(at, base).await,
                    None => None,
                };
                with(WorktreeRecord {
                    task: task.id().clone(),
                    home: home.clone(),
                    repository: own.clone(),
                    object_format,
                    settings,
                    base: base.unwrap_or_else(|| start.clone()),
                    start,
                    branch: wanted.branch,
                    is_ready: false,
                })
            }
        };
        let folder = checkout.path().join(inside);
        let (task, position) = (task.clone(), Some(position));
        let mut worktree = Self { checkout, task, position, folder, tip: None, is_given_up: false, is_closed: false };
        if worktree.checkout.record.is_ready {
            return Ok(worktree);
        }
        // In its own task: if the turn is canceled meanwhile, it is made to the end and then dropped.
        let made = tokio::spawn(async move { worktree.checkout.make().await.map(|()| worktree) });
        made.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
    }

    /// What its work is kept as; none if it is not kept.
    pub(super) fn branch(&self) -> Option<&str> {
        self.checkout.record.branch.as_deref()
    }

    /// The commit that the task began with.
    pub(super) fn base(&self) -> &str {
        &self.checkout.record.base
    }

    /// What is in it has been committed as this.
    pub(super) fn tip(&self) -> Option<&str> {
        self.tip.as_deref()
    }

    /// What was changed since the task began. Commits it.
    pub(super) async fn changes(&mut self, about: &str) -> Result<Changes, GitError> {
        let tip = self.checkout.commit(about).await?;
        self.tip = Some(tip.clone());
        self.checkout.changes(&tip).await
    }

    /// It is not used again: dropping it commits and removes it.
    pub(super) fn give_up(&mut self) {
        self.is_given_up = true;
    }

    /// The turn has settled: it is removed, unless it holds what is to be kept and could not be committed.
    pub(super) async fn close(mut self) {
        if self.tip.is_some() || self.branch().is_none() {
            self.checkout.remove().await;
        }
        self.is_closed = true;
    }
}

struct Repository {
    top: PathBuf,
    /// Its own folder, which all its worktrees share.
    own: PathBuf,
    object_format: String,
    /// The commit it stands at.
    head: String,
}

impl Repository {
    /// The repository that a folder is in.
    async fn of(git: &Git, folder: &Path) -> Result<Self, &'static str> {
        let none = "this agent works in worktrees, and its folder is in no git repository";
        let facts = ["--path-format=absolute", "--show-toplevel", "--git-common-dir", "--show-object-format"];
        let all = [&["rev-parse"], &facts[..], &["HEAD^{commit}"]].concat();
        let Ok(printed) = git.run(GitTarget::Folder(folder), &all).await else {
            let is_one = git.run(GitTarget::Folder(folder), &["rev-parse", "--show-toplevel"]).await.is_ok();
            let empty = "this agent works in worktrees, and its repository has no commit";
            return Err(if is_one { empty } else { none });
        };
        let mut lines = printed.lines().map(str::to_owned);
        let mut next = || lines.next().ok_or(none);
        let (top, own) = (PathBuf::from(next()?), PathBuf::from(next()?));
        Ok(Self { top, own, object_format: next()?, head: next()? })
    }
}

/// The commit to begin with, if not where the repository stands.
async fn start(git: &Git, at: GitTarget<'_>, wanted: &WorktreeRequest<'_>) -> Option<String> {
    if let Some(tip) = wanted.tip
        && let Some(commit) = git.commit(at, tip).await
    {
        return Some(commit);
    }
    if wanted.earlier.is_empty() || wanted.branch.is_none() {
        return None;
    }
    let names: Vec<String> = wanted.earlier.iter().map(|branch| format!("refs/heads/{branch}")).collect();
    let mut args = vec!["for-each-ref", "--format=%(refname) %(objectname)"];
    args.extend(names.iter().map(String::as_str));
    let printed = git.run(at, &args).await.ok()?;
    let there: HashMap<&str, &str> = printed.lines().filter_map(|line| line.split_once(' ')).collect();
    names.iter().find_map(|name| there.get(name.as_str())).map(|commit| (*commit).to_owned())
}

/// Commits and removes what another task of the conversation has left at this path.
async fn make_room(left: &Checkout) -> Result<(), String> {
    left.commit_and_remove().await;
    let path = left.path();
    match path.symlink_metadata() {
        Ok(_) => {
            let path = path.display();
            Err(format!("an earlier task has left work at {path} that cannot be put away: look at it, and remove it"))
        }
        Err(_) => Ok(()),
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        // The kernel ends the task of a turn that panics, so its worktree is not used again.
        let is_left = self.task.is_over() || self.is_given_up || std::thread::panicking();
        if self.is_closed || !is_left {
            return;
        }
        let (left, position, is_committed) = (self.checkout.clone(), self.position.take(), self.tip.is_some());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Some(position) = &position {
                    // Its program may still be writing what is to be committed.
                    position.child_exited().await;
                }
                if is_committed {
                    left.remove().await;
                } else {
                    left.commit_and_remove().await;
                }
                drop(position);
            });
        }
    }
}
