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

#[cfg(test)]
mod tests {
    use super::*;

    fn git_folder(folder: &Path) {
        for part in ["objects", "refs", "hooks"] {
            std::fs::create_dir_all(folder.join(part)).unwrap();
        }
        std::fs::write(folder.join("HEAD"), "").unwrap();
    }

    #[test]
    fn folders_of_one_repository_share_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for folder in ["app/a/b", "plain/.git", "plain/x", "copy/x"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        git_folder(&root.join("app/.git"));
        std::fs::write(root.join("copy/.git"), "").unwrap();
        assert_eq!(top(&root.join("app/a/b")), Some(root.join("app").as_path()));
        assert_eq!(top(&root.join("copy/x")), Some(root.join("copy").as_path()));
        assert_eq!(top(&root.join("plain/x")), None);
    }

    #[test]
    fn what_is_gits_own_is_known_wherever_it_is() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for folder in ["app/.git", "bare.git", "elsewhere/store"] {
            git_folder(&root.join(folder));
        }
        std::fs::create_dir_all(root.join("app/src")).unwrap();
        std::fs::create_dir_all(root.join("plain/.GIT/x")).unwrap();
        std::fs::create_dir_all(root.join("bare.git/main/src")).unwrap();
        std::fs::write(root.join("bare.git/main/.git"), "").unwrap();
        for own in ["app/.git", "app/.git/hooks", "bare.git", "bare.git/hooks", "elsewhere/store/refs", "plain/.GIT/x"]
        {
            assert!(is_of_git(&root.join(own)), "{own}");
        }
        for files in ["app", "app/src", "elsewhere", "plain", "bare.git/main/src"] {
            assert!(!is_of_git(&root.join(files)), "{files}");
        }
    }

    #[test]
    fn repositories_below_are_found_and_what_is_too_large_may_hold_some() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        git_folder(&root.join("group/inner/app/.git"));
        git_folder(&root.join("bare/app.git"));
        std::fs::create_dir_all(root.join("copies/one")).unwrap();
        std::fs::write(root.join("copies/one/.git"), "").unwrap();
        std::fs::create_dir_all(root.join("plain/src/.git")).unwrap();
        std::os::unix::fs::symlink(root.join("group"), root.join("plain/link")).unwrap();
        for above in ["group", "bare", "copies"] {
            assert!(may_hold_repositories(&root.join(above)), "{above}");
        }
        assert!(!may_hold_repositories(&root.join("plain")));
        // It has three: itself, `src` and `src/.git`.
        assert!(!may_hold_repositories_within(3, &root.join("plain")));
        assert!(may_hold_repositories_within(2, &root.join("plain")));
    }
}
