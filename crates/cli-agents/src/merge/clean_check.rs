//! Whether a checkout can take a merge: nothing in it is uncommitted, hidden or in the way, and no filter would have to run.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::changed_paths::ChangedPath;
use super::checkout_update::MergeRecord;
use super::obstacle::Obstacle;
use crate::git::{Git, GitError, GitTarget, IsolatedGitDir};

/// What git has in its folder in the middle of something.
const UNFINISHED: [(&str, &str); 6] = [
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("sequencer", "cherry-pick"),
];
/// So many names are passed to a command.
const NAMES: usize = 256;

/// Refuses a merge that would touch what is not committed.
pub(super) async fn check(
    git: &Git,
    isolated: &IsolatedGitDir,
    record: &MergeRecord,
    changed: &[ChangedPath],
) -> Result<(), Obstacle> {
    let is_there = |name: &str| record.git_dir.join(name).symlink_metadata().is_ok();
    if let Some((_, operation)) = UNFINISHED.iter().find(|(name, _)| is_there(name)) {
        return Err(Obstacle::Unfinished(operation));
    }
    let at = GitTarget::Isolated(isolated);
    let filtered = filtered(git, at, &record.to, changed).await?;
    if !filtered.is_empty() {
        return Err(Obstacle::Filtered(filtered));
    }
    if !git.copy_file(&record.git_dir.join("index"), &isolated.index()).await {
        let problem = "the index of the checkout cannot be read".to_owned();
        return Err(GitError { command: "status".to_owned(), problem }.into());
    }
    // A small letter is a file that is assumed to be unchanged, S one that is not checked out.
    let hidden = git.names(at, &["ls-files", "-v", "-z"], |line| {
        let (tag, name) = (line.first()?, line.get(2..)?);
        (tag.is_ascii_lowercase() || *tag == b'S').then(|| name.to_vec())
    });
    let hidden = hidden.await?;
    if !hidden.is_empty() {
        return Err(Obstacle::Hidden(texts(hidden)));
    }
    // It fails if something has changed.
    let _ = git.run(at, &["update-index", "-q", "--refresh"]).await;
    let mut uncommitted = BTreeSet::new();
    let shown = ["--name-only", "-z", "--ignore-submodules=all"];
    for command in [&["diff-index", "--cached"][..], &["diff-files"][..]] {
        let of = if command.len() > 1 { &[record.from.as_str()][..] } else { &[] };
        let args = [command, &shown[..], of].concat();
        uncommitted.extend(texts(git.names(at, &args, |name| Some(name.to_vec())).await?));
    }
    if !uncommitted.is_empty() {
        return Err(Obstacle::Uncommitted(uncommitted.into_iter().collect()));
    }
    let added = changed.iter().filter(|changed| !changed.old.is_there() && changed.new.is_file());
    let untracked = added.filter(|added| is_taken(&record.top, Path::new(&added.path), changed));
    let untracked: Vec<String> = untracked.map(|added| added.path.to_string_lossy().into_owned()).collect();
    if untracked.is_empty() { Ok(()) } else { Err(Obstacle::Untracked(untracked)) }
}

/// Whether something is where a new file is to be, or where a folder for it is.
fn is_taken(top: &Path, path: &Path, changed: &[ChangedPath]) -> bool {
    let is_removed = |path: &Path| changed.iter().any(|changed| changed.path == path && !changed.new.is_there());
    if top.join(path).symlink_metadata().is_ok() {
        return true;
    }
    let above = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    let mut others = above.filter(|folder| top.join(folder).symlink_metadata().is_ok_and(|found| !found.is_dir()));
    others.any(|file| !is_removed(file))
}

/// Of the files that are to be written those for which a filter is named.
async fn filtered(git: &Git, at: GitTarget<'_>, to: &str, changed: &[ChangedPath]) -> Result<Vec<String>, GitError> {
    git.run(at, &["read-tree", to]).await?;
    let written: Vec<&OsString> =
        changed.iter().filter(|changed| changed.new.is_file()).map(|changed| &changed.path).collect();
    let mut filtered = Vec::new();
    for names in written.chunks(NAMES) {
        let mut args: Vec<&OsStr> = ["check-attr", "--cached", "-z", "filter", "--"].map(OsStr::new).into();
        args.extend(names.iter().map(|name| name.as_os_str()));
        // Name, attribute, value.
        let words = git.names(at, &args, |word| Some(word.to_vec())).await?;
        for entry in words.chunks_exact(3) {
            if let [name, _, value] = entry
                && !matches!(value.as_slice(), b"unspecified" | b"unset")
            {
                filtered.push(String::from_utf8_lossy(name).into_owned());
            }
        }
    }
    Ok(filtered)
}

fn texts(names: Vec<Vec<u8>>) -> Vec<String> {
    names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}
