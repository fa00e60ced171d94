//! The repository that a folder is in, as git itself finds it.

use std::path::{Path, PathBuf};

use super::{Git, GitTarget};

/// A repository, and the checkout of it that a folder is in.
pub(crate) struct Repository {
    /// The top folder of the checkout.
    pub(crate) top: PathBuf,
    /// Its own folder, which all its worktrees share: `.git`.
    pub(crate) own: PathBuf,
    /// What is this checkout's alone, its index and its HEAD: the same folder, or one in it.
    pub(crate) git_dir: PathBuf,
    /// How it names its objects.
    pub(crate) object_format: String,
    /// The commit that the checkout stands at.
    pub(crate) head: String,
}

/// Why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRepository {
    Outside,
    Empty,
}

impl NoRepository {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Outside => "this agent works in worktrees, and its folder is in no git repository",
            Self::Empty => "this agent works in worktrees, and its repository has no commit",
        }
    }
}

impl Repository {
    /// The repository that a folder is in.
    pub(crate) async fn of(git: &Git, folder: &Path) -> Result<Self, NoRepository> {
        let facts = [
            "--path-format=absolute",
            "--show-toplevel",
            "--git-common-dir",
            "--absolute-git-dir",
            "--show-object-format",
        ];
        let all = [&["rev-parse"], &facts[..], &["HEAD^{commit}"]].concat();
        let Ok(printed) = git.run(GitTarget::Folder(folder), &all).await else {
            let is_one = git.run(GitTarget::Folder(folder), &["rev-parse", "--show-toplevel"]).await.is_ok();
            return Err(if is_one { NoRepository::Empty } else { NoRepository::Outside });
        };
        let mut lines = printed.lines().map(str::to_owned);
        let mut next = || lines.next().ok_or(NoRepository::Outside);
        let (top, own, git_dir) = (PathBuf::from(next()?), PathBuf::from(next()?), PathBuf::from(next()?));
        Ok(Self { top, own, git_dir, object_format: next()?, head: next()? })
    }
}
