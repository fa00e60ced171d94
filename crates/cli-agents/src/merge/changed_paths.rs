//! The files in which two commits differ, as they are in a checkout now, and putting them to either commit.
//!
//! A kill may stop git between any two files, and within one. So each file is looked at before it is written: one that is
//! as either commit has it, is missing, or is the beginning of what is to be written may be replaced. Any other content is
//! somebody's work and stays.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::git::{Git, GitError, GitTarget, IsolatedGitDir};

/// So many names are passed to a command.
const NAMES: usize = 256;
/// How git says that there is nothing.
const NOTHING: &str = "000000";
/// A repository within the repository, whose files are not touched.
const REPOSITORY_WITHIN: &str = "160000";

/// A path, in one commit and in the other.
pub(super) struct ChangedPath {
    pub(super) path: OsString,
    pub(super) old: Entry,
    pub(super) new: Entry,
}

pub(super) struct Entry {
    mode: String,
    object: String,
}

impl Entry {
    pub(super) fn is_there(&self) -> bool {
        self.mode != NOTHING
    }

    /// Whether it is written to the checkout.
    pub(super) fn is_file(&self) -> bool {
        self.is_there() && self.mode != REPOSITORY_WITHIN
    }
}

/// The paths in which a commit differs from another.
pub(super) async fn changed_paths(
    git: &Git,
    at: GitTarget<'_>,
    from: &str,
    to: &str,
) -> Result<Vec<ChangedPath>, GitError> {
    let (mut changed, mut facts) = (Vec::new(), None);
    git.names(at, &["diff-tree", "-r", "--no-renames", "--raw", "-z", from, to], |item| {
        match facts.take() {
            None => facts = Some(String::from_utf8_lossy(item).into_owned()),
            Some(known) => changed.extend(entry(&known, item)),
        }
        None
    })
    .await?;
    Ok(changed)
}

/// `:OLD_MODE NEW_MODE OLD_OBJECT NEW_OBJECT STATUS`.
fn entry(facts: &str, path: &[u8]) -> Option<ChangedPath> {
    let mut words = facts.strip_prefix(':')?.split(' ').map(str::to_owned);
    let (old, new, old_object, new_object) = (words.next()?, words.next()?, words.next()?, words.next()?);
    Some(ChangedPath {
        path: OsStr::from_bytes(path).to_owned(),
        old: Entry { mode: old, object: old_object },
        new: Entry { mode: new, object: new_object },
    })
}

/// The files of a checkout, apart from its own index.
pub(super) struct Files<'a> {
    pub(super) git: &'a Git,
    pub(super) isolated: &'a IsolatedGitDir,
    pub(super) top: &'a Path,
}

impl Files<'_> {
    /// Puts the files in which two commits differ from the first to the second.
    pub(super) async fn change(&self, from: &str, to: &str) -> Result<(), GitError> {
        let at = GitTarget::Isolated(self.isolated);
        let changed = changed_paths(self.git, at, from, to).await?;
        let old = changed.iter().filter(|changed| changed.old.is_file());
        let not_old = self.not_as(old.map(|changed| (&changed.old, &changed.path))).await?;
        let is_old = |changed: &ChangedPath| changed.old.is_file() && !not_old.contains(&changed.path);
        let removed = changed.iter().filter(|changed| !changed.new.is_there() && is_old(changed));
        let removed: Vec<OsString> = removed.map(|changed| literal(&changed.path)).collect();
        self.each(&["rm", "--quiet", "--force", "--ignore-unmatch", "--"], &removed).await?;
        let new = changed.iter().filter(|changed| changed.new.is_file());
        let not_new = self.not_as(new.clone().map(|changed| (&changed.new, &changed.path))).await?;
        let mut written = Vec::new();
        for changed in new.filter(|changed| not_new.contains(&changed.path)) {
            if is_old(changed) || self.is_begun(changed).await {
                written.push(changed.path.clone());
            }
        }
        self.each(&["checkout-index", "--quiet", "--force", "--"], &written).await
    }

    /// Which of these files are not as they are here. The index has them afterwards, and nothing else.
    async fn not_as<'p>(
        &self,
        entries: impl Iterator<Item = (&'p Entry, &'p OsString)>,
    ) -> Result<HashSet<OsString>, GitError> {
        let at = GitTarget::Isolated(self.isolated);
        self.git.run(at, &["read-tree", "--empty"]).await?;
        // Two arguments each: a chunk of names is even, so none is parted.
        let entries = entries.flat_map(|(entry, path)| {
            let mut text = OsString::from(format!("{},{},", entry.mode, entry.object));
            text.push(path);
            [OsString::from("--cacheinfo"), text]
        });
        self.each(&["update-index", "--add"], &entries.collect::<Vec<_>>()).await?;
        // It fails if some are not.
        let _ = self.git.run(at, &["update-index", "-q", "--refresh"]).await;
        let differ = ["diff-files", "--name-only", "-z", "--ignore-submodules=all"];
        let names = self.git.names(at, &differ, |name| Some(name.to_vec())).await?;
        Ok(names.iter().map(|name| OsStr::from_bytes(name).to_owned()).collect())
    }

    async fn each(&self, command: &[&str], names: &[OsString]) -> Result<(), GitError> {
        for names in names.chunks(NAMES) {
            let mut args: Vec<&OsStr> = command.iter().map(OsStr::new).collect();
            args.extend(names.iter().map(OsString::as_os_str));
            self.git.run(GitTarget::Isolated(self.isolated), &args).await?;
        }
        Ok(())
    }

    /// Whether a file is missing, or as a kill has left it while it was written.
    async fn is_begun(&self, changed: &ChangedPath) -> bool {
        let path = self.top.join(&changed.path);
        let Ok(found) = path.symlink_metadata() else { return true };
        if !found.is_file() {
            return false;
        }
        if found.len() == 0 {
            return true;
        }
        let Ok(mut file) = std::fs::File::open(&path) else { return false };
        let (mut rest, mut is_beginning) = (found.len(), true);
        let compare = |bytes: &[u8]| {
            let length = bytes.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
            let mut begun = vec![0; length];
            is_beginning &= file.read_exact(&mut begun).is_ok() && bytes.get(..length) == Some(&begun[..]);
            rest -= length as u64;
        };
        let read = self
            .git
            .read(GitTarget::Isolated(self.isolated), &["cat-file", "blob", &changed.new.object], compare)
            .await;
        read.is_ok() && is_beginning && rest == 0
    }
}

/// A name that stands for itself alone.
fn literal(path: &OsStr) -> OsString {
    let mut text = OsString::from(":(literal)");
    text.push(path);
    text
}
