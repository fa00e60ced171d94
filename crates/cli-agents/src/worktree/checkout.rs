//! A worktree on disk: checkout, commit, diff, and removal.
//!
//! It is a detached git worktree. The branch is made at the end, of what there is to keep, so that there is never an
//! empty one, and none that is not to be kept. The worktree's own `.git` is for the program in it and is never used
//! here.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Changes;
use super::patch::Collecting;
use super::record::{WorktreeRecord, WorktreeRecords};
use crate::adapters::cut;
use crate::git::{Git, GitError, GitTarget, IsolatedGitDir};

/// What a program can do to a repository within a worktree is not looked at; git knows it as this.
const REPOSITORY_WITHIN: &[u8] = b"160000 ";
/// So many names are passed to a command.
const NAMES: usize = 256;

/// A worktree on disk, with its record.
#[derive(Clone)]
pub(super) struct Checkout {
    pub(super) git: Git,
    pub(super) home: PathBuf,
    pub(super) records: WorktreeRecords,
    /// Of its folder, its record, and git's own notes about it.
    pub(super) name: String,
    pub(super) record: WorktreeRecord,
}

impl Checkout {
    pub(super) fn path(&self) -> PathBuf {
        self.home.join(&self.name)
    }

    /// Our own `.git` for it, while it is made and while its work is committed.
    fn own(&self) -> PathBuf {
        self.home.join(format!("{}.git", self.name))
    }

    /// What the repository keeps about it.
    fn notes(&self) -> PathBuf {
        self.record.repository.join("worktrees").join(&self.name)
    }

    /// Whether it is there and a program may have worked in it.
    pub(super) fn is_usable(&self) -> bool {
        // A link could lead anywhere.
        self.record.is_ready && self.path().symlink_metadata().is_ok_and(|found| found.is_dir())
    }

    pub(super) async fn make(&mut self) -> Result<(), GitError> {
        self.remove_folders().await;
        self.record.is_ready = false;
        self.write()?;
        let made = self.fill().await;
        match made {
            Ok(()) => {
                self.record.is_ready = true;
                self.write()
            }
            Err(error) => {
                self.remove().await;
                Err(error)
            }
        }
    }

    fn write(&self) -> Result<(), GitError> {
        let failed = |error: std::io::Error| GitError { command: "worktree".to_owned(), problem: error.to_string() };
        self.records.write(&self.name, &self.record).map_err(failed)
    }

    async fn fill(&self) -> Result<(), GitError> {
        let (path, start) = (self.path(), self.record.start.as_str());
        let words = ["worktree", "add", "--quiet", "--force", "--detach", "--no-checkout"].map(OsStr::new);
        let args = [&words[..], &[path.as_os_str(), OsStr::new(start)]].concat();
        let alone = self.git.lock_worktree_list(&self.record.repository).await;
        self.git.run(GitTarget::Repository(&self.record.repository), &args).await?;
        drop(alone);
        let isolated = self.isolated().await?;
        self.git.run(GitTarget::Isolated(&isolated), &["read-tree", "--reset", "-u", start]).await?;
        // With this index, `git status` in the worktree shows no changes.
        self.git.copy_file(&isolated.index(), &self.notes().join("index")).await;
        self.git.remove_folder(&self.own()).await;
        Ok(())
    }

    async fn isolated(&self) -> Result<IsolatedGitDir, GitError> {
        let WorktreeRecord { repository, object_format, settings, .. } = &self.record;
        self.git.isolated(&self.own(), &self.path(), repository, (object_format, settings)).await
    }

    /// Commits what is there, and names it if it is kept. Says the commit.
    pub(super) async fn commit(&self, about: &str) -> Result<String, GitError> {
        let isolated = self.isolated().await?;
        let at = GitTarget::Isolated(&isolated);
        let (parent, before) = self.head(at).await?;
        let tree = match self.tree(&isolated, &parent, true).await {
            Ok(tree) => tree,
            // What the program has left of git's own files is broken, or locked.
            Err(_) => self.tree(&isolated, &parent, false).await?,
        };
        let commit = if tree == before {
            parent
        } else {
            let subject = cut(about.lines().next().unwrap_or_default().trim(), 72).into_owned();
            let subject = if subject.is_empty() { "Work of a task".to_owned() } else { subject };
            self.git.word(at, &["commit-tree", &tree, "-p", &parent, "-m", &subject]).await?
        };
        if let Some(branch) = self.record.branch.as_ref().filter(|_| commit != self.record.base) {
            let name = format!("refs/heads/{branch}");
            self.git.run(GitTarget::Repository(&self.record.repository), &["update-ref", &name, &commit]).await?;
        }
        self.git.remove_folder(&self.own()).await;
        Ok(commit)
    }

    /// The commit that the worktree stands at, which may be the program's own, and its tree.
    async fn head(&self, at: GitTarget<'_>) -> Result<(String, String), GitError> {
        let tree =
            async |commit: &str| self.git.word(at, &["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).await;
        // Not if it belongs to another repository.
        let head = match detached(&self.notes().join("HEAD")) {
            Some(head) => Some(head),
            None => self.git.commit(GitTarget::Repository(&self.notes()), "HEAD").await,
        };
        if let Some(head) = head
            && let Ok(tree) = tree(&head).await
        {
            return Ok((head, tree));
        }
        let start = self.record.start.clone();
        let tree = tree(&start).await?;
        Ok((start, tree))
    }

    /// All files as git would commit them, with or without what the program itself has staged.
    async fn tree(&self, isolated: &IsolatedGitDir, parent: &str, with_its_own: bool) -> Result<String, GitError> {
        let at = GitTarget::Isolated(isolated);
        let is_copied = with_its_own && self.git.copy_file(&self.notes().join("index"), &isolated.index()).await;
        if !is_copied {
            self.git.run(at, &["read-tree", parent]).await?;
        }
        self.forget_repositories_within(at).await?;
        if self.git.run(at, &["add", "--all"]).await.is_err() {
            // Files that cannot be read, and repositories that have no commit yet.
            self.git.make_readable(&self.path()).await;
            let mut names = vec![OsString::from("add"), "--all".into(), "--".into(), ".".into()];
            names.extend(self.empty_repositories_within(at).await?);
            self.git.run(at, &names).await?;
        }
        self.git.word(at, &["write-tree"]).await
    }

    /// Git looks into repositories within this one for changes, and runs there what they name. Those that it does not
    /// know of yet it only takes down.
    async fn forget_repositories_within(&self, at: GitTarget<'_>) -> Result<(), GitError> {
        let path = self.path();
        let listed = self.names(at, &["ls-files", "--stage", "-z"], |entry| {
            let name = entry.strip_prefix(REPOSITORY_WITHIN)?.splitn(2, |byte| *byte == b'\t').nth(1)?;
            path.join(OsStr::from_bytes(name)).join(".git").symlink_metadata().is_ok().then(|| name.to_vec())
        });
        for names in listed.await?.chunks(NAMES) {
            let mut args: Vec<&OsStr> = ["update-index", "--force-remove", "--"].map(OsStr::new).into();
            args.extend(names.iter().map(|name| OsStr::from_bytes(name)));
            self.git.run(at, &args).await?;
        }
        Ok(())
    }

    /// Repositories within this one that have no commit yet, as pathspecs that exclude them.
    async fn empty_repositories_within(&self, at: GitTarget<'_>) -> Result<Vec<OsString>, GitError> {
        let listed = self.names(at, &["ls-files", "--others", "--exclude-standard", "-z"], |name| {
            name.strip_suffix(b"/").map(<[u8]>::to_vec)
        });
        let mut empty = Vec::new();
        for name in listed.await? {
            if self.git.head(&self.path().join(OsStr::from_bytes(&name))).await.is_none() {
                empty.push(OsStr::from_bytes(&[b":(exclude,literal)", name.as_slice()].concat()).to_owned());
            }
        }
        Ok(empty)
    }

    /// Of the names that a command prints those that are wanted. However many there are, only these are kept.
    async fn names(
        &self,
        at: GitTarget<'_>,
        args: &[&str],
        wanted: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>, GitError> {
        let (mut begun, mut names) = (Vec::new(), Vec::new());
        let take = |bytes: &[u8]| {
            for piece in bytes.split_inclusive(|byte| *byte == 0) {
                begun.extend_from_slice(piece.strip_suffix(b"\0").unwrap_or(piece));
                if piece.ends_with(b"\0") {
                    names.extend(wanted(&begun));
                    begun.clear();
                }
            }
        };
        self.git.read(at, args, take).await?;
        Ok(names)
    }

    /// What was changed between the task's beginning and a commit.
    pub(super) async fn changes(&self, commit: &str) -> Result<Changes, GitError> {
        let at = GitTarget::Repository(&self.record.repository);
        let range = [self.record.base.as_str(), commit];
        let differences =
            ["diff-tree", "-r", "-M", "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short"];
        let mut patch = Collecting::new(self.git.limit);
        let whole = [&differences[..], &["-p", "--binary", "--full-index"], &range].concat();
        let named = [&differences[..], &["--name-only", "-z"], &range].concat();
        let (printed, names) = tokio::join!(
            self.git.read(at, &whole, |bytes| patch.take(bytes)),
            self.names(at, &named, |name| Some(name.to_vec()))
        );
        printed?;
        let names = names?;
        let files = names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        Ok(Changes { patch: patch.finish(), files })
    }

    /// Removes it; what is to be kept of it is committed first. It stays if that cannot be done now.
    pub(super) async fn commit_and_remove(&self) {
        let is_kept = self.record.branch.is_some() && self.is_usable() && is_there(&self.record.repository);
        if is_kept && let Err(error) = self.commit("Work of a task that was stopped").await {
            let path = self.path();
            tracing::warn!(
                path = %path.display(), task = %self.record.task, %error,
                "a worktree holds work that cannot be committed; this is tried again"
            );
            return;
        }
        self.remove().await;
    }

    /// Removes it, and then its record.
    pub(super) async fn remove(&self) {
        // What a kill leaves of it must not be taken for the work of its task.
        let going = Self { record: WorktreeRecord { is_ready: false, ..self.record.clone() }, ..self.clone() };
        if self.record.is_ready
            && let Err(error) = going.write()
        {
            tracing::warn!(worktree = %self.name, %error, "a worktree cannot be removed now; this is tried again");
            return;
        }
        self.remove_folders().await;
        if is_there(&self.path()) || is_there(&self.notes()) {
            // Why has been logged. It is tried again.
            return;
        }
        if let Err(error) = self.records.remove(&self.name) {
            tracing::warn!(worktree = %self.name, %error, "the record of a worktree could not be removed");
        }
    }

    async fn remove_folders(&self) {
        self.git.remove_folder(&self.path()).await;
        self.git.remove_folder(&self.own()).await;
        // `git worktree prune` would also forget worktrees of the user's own that are only out of reach now.
        let _alone = self.git.lock_worktree_list(&self.record.repository).await;
        self.git.remove_folder(&self.notes()).await;
    }
}

/// The commit in a file of git's, if it names one and no branch.
fn detached(head: &Path) -> Option<String> {
    head.symlink_metadata().ok().filter(|found| found.is_file() && found.len() < 100)?;
    let commit = std::fs::read_to_string(head).ok()?.trim().to_owned();
    (commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(commit)
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
