//! The record of a worktree, out of reach of the program in it. It is written before the worktree and removed after it,
//! so that after a kill at any moment the next server knows whose the worktree is and what is to become of it.

use std::io::{self, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use switchboard_a2a::TaskId;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorktreeRecord {
    /// Whose it is.
    pub(super) task: TaskId,
    /// The folder that its own is in.
    pub(super) home: PathBuf,
    /// What it is a worktree of: the repository's own folder, `.git`.
    pub(super) repository: PathBuf,
    /// How the repository names its objects.
    pub(super) object_format: String,
    /// The repository's settings about files when the worktree was made; a program may have changed them since.
    pub(super) settings: Vec<String>,
    /// The commit the task began with.
    pub(super) base: String,
    /// The commit the worktree was made of.
    pub(super) start: String,
    /// What its work is kept as; none if it is not kept.
    pub(super) branch: Option<String>,
    /// It is complete, so that a program may have worked in it.
    pub(super) is_ready: bool,
}

/// Records of one kind of an agent's, by the names of what they are about.
pub(crate) struct Records<R> {
    pub(crate) folder: PathBuf,
    /// What the names of their files end with: that of a record, and that of one which is being written.
    endings: (&'static str, &'static str),
    kind: PhantomData<fn() -> R>,
}

impl<R> Clone for Records<R> {
    fn clone(&self) -> Self {
        Self { folder: self.folder.clone(), endings: self.endings, kind: PhantomData }
    }
}

impl Records<WorktreeRecord> {
    pub(super) fn of_worktrees(folder: PathBuf) -> Self {
        Self::new(folder, ("json", "part"))
    }
}

impl<R: Serialize + DeserializeOwned> Records<R> {
    pub(crate) fn new(folder: PathBuf, endings: (&'static str, &'static str)) -> Self {
        Self { folder, endings, kind: PhantomData }
    }

    /// The names of what has a record.
    pub(crate) fn names(&self) -> Vec<String> {
        let (record, part) = self.endings;
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let records = files.filter(|file| file.extension().is_some_and(|kind| kind == record || kind == part));
        let mut names: Vec<String> = records.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect();
        names.sort();
        names.dedup();
        names
    }

    /// A record; none if there is none, or it was never begun.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<R>> {
        let (record, part) = self.endings;
        match std::fs::read(self.file(name, record)) {
            Ok(json) => Ok(Some(serde_json::from_slice(&json)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                remove(&self.file(name, part))?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn write(&self, name: &str, value: &R) -> io::Result<()> {
        let (record, part) = self.endings;
        std::fs::create_dir_all(&self.folder)?;
        let part = self.file(name, part);
        let mut file = std::fs::File::create(&part)?;
        file.write_all(&serde_json::to_vec(value)?)?;
        file.sync_all()?;
        std::fs::rename(part, self.file(name, record))
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        remove(&self.file(name, self.endings.0))
    }

    fn file(&self, name: &str, kind: &str) -> PathBuf {
        self.folder.join(format!("{name}.{kind}"))
    }
}

fn remove(file: &Path) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
