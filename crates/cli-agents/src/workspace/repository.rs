//! What git has at a folder and around it, as far as can be seen without running it.

use std::path::{Path, PathBuf};

/// So many folders are looked through for repositories.
const MOST_FOLDERS: usize = 2_000;

/// The top of the repository whose files a folder is among, if it is in one.
pub(super) fn top(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| is_top(folder))
}

/// Whether a folder belongs to git itself: it is within `.git`, or within a repository that has no files of its own.
/// A program that can write there can name programs that git runs.
pub(super) fn is_of_git(folder: &Path) -> bool {
    if folder.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git")) {
        return true;
    }
    // People put worktrees into a repository without files: those are work trees all the same.
    let nearest = folder.ancestors().find(|folder| is_top(folder) || is_git_folder(folder));
    nearest.is_some_and(|folder| !is_top(folder))
}

/// Whether there may be repositories below a folder. One that is too large to be looked through may hold some.
pub(super) fn may_hold_repositories(folder: &Path) -> bool {
    may_hold_repositories_within(MOST_FOLDERS, folder)
}

fn may_hold_repositories_within(most_folders: usize, folder: &Path) -> bool {
    let mut unseen: Vec<PathBuf> = vec![folder.to_owned()];
    let mut seen = 0;
    while let Some(folder) = unseen.pop() {
        seen += 1;
        if seen > most_folders || is_top(&folder) || is_git_folder(&folder) {
            return true;
        }
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        unseen.extend(folders.map(|entry| entry.path()));
    }
    false
}

/// Whether a repository's files begin here. `.git` is a file in worktrees and submodules. An empty folder of that name
/// is no repository; some programs leave such.
fn is_top(folder: &Path) -> bool {
    folder.join(".git").is_file() || folder.join(".git/HEAD").exists()
}

/// Whether this is where git keeps a repository.
fn is_git_folder(folder: &Path) -> bool {
    // In old repositories the head may be a link to a branch that is not there yet.
    let has_head = folder.join("HEAD").symlink_metadata().is_ok();
    has_head && folder.join("objects").is_dir() && folder.join("refs").is_dir()
}
