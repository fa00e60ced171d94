//! The record of a worktree, out of reach of the program in it. It is written before the worktree and removed after it,
//! so that after a kill at any moment the next server knows whose the worktree is and what is to become of it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use switchboard_a2a::TaskId;

const RECORD: &str = "json";
const PART: &str = "part";

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

/// The records of an agent's worktrees, by the names of their folders.
#[derive(Clone)]
pub(super) struct WorktreeRecords {
    pub(super) folder: PathBuf,
}

impl WorktreeRecords {
    /// The names of worktrees that have a record.
    pub(super) fn names(&self) -> Vec<String> {
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let records = files.filter(|file| file.extension().is_some_and(|kind| kind == RECORD || kind == PART));
        let mut names: Vec<String> = records.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The record of a worktree; none if there is none, or it was never begun.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<WorktreeRecord>> {
        match std::fs::read(self.file(name, RECORD)) {
            Ok(json) => Ok(Some(serde_json::from_slice(&json)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                remove(&self.file(name, PART))?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn write(&self, name: &str, record: &WorktreeRecord) -> io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let part = self.file(name, PART);
        let mut file = std::fs::File::create(&part)?;
        file.write_all(&serde_json::to_vec(record)?)?;
        file.sync_all()?;
        std::fs::rename(part, self.file(name, RECORD))
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        remove(&self.file(name, RECORD))
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
