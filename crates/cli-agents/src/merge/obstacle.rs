//! What keeps a branch from being merged. It is a question then, and the repository is as it was.

use std::path::PathBuf;

use crate::adapters::cut;
use crate::git::GitError;

/// So many files are named.
const NAMED: usize = 20;
/// The longest name that is shown whole, in characters.
const NAME_CHARACTERS: usize = 200;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Obstacle {
    #[error("both sides have changed {}: resolve that on the branch, or say so here for the program to do it", list(.0))]
    Conflicts(Vec<String>),
    #[error("the checkout has changes that are not committed, in {}: commit or stash them first", list(.0))]
    Uncommitted(Vec<String>),
    #[error("files that git does not know are in the way: {}; move them away first", list(.0))]
    Untracked(Vec<String>),
    #[error("{} pass through a filter, such as Git LFS, which is not run here: merge the branch by hand", list(.0))]
    Filtered(Vec<String>),
    #[error("the checkout hides {} from git (sparse checkout, skip-worktree or assume-unchanged): merge by hand", list(.0))]
    Hidden(Vec<String>),
    #[error("the checkout is in the middle of another operation ({0}): finish or abort it first")]
    Unfinished(&'static str),
    #[error("another git command is at work in the checkout, or has left {}", .0.display())]
    Locked(PathBuf),
    #[error("the branch is checked out in {} now, and the merge was to be made elsewhere", .0.display())]
    Elsewhere(PathBuf),
    #[error("there is no branch {0} any more")]
    NoBranch(String),
    #[error("{0} has got another commit meanwhile")]
    Moved(String),
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Obstacle {
    /// The files that conflict.
    pub(super) fn conflicts(&self) -> &[String] {
        match self {
            Self::Conflicts(files) => files,
            _ => &[],
        }
    }
}

/// Some names, and how many more there are.
pub(super) fn list(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(NAMED).map(|name| cut(name, NAME_CHARACTERS)).collect();
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
