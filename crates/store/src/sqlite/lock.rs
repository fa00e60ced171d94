//! The file lock: one process per data directory. The operating system releases it when the process dies, so its holder
//! knows that every lease of earlier processes is void.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use super::open::OpenError;

const FILE_NAME: &str = "switchboard.lock";

/// Who holds a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// Its process id; absent if the file could not be read.
    pub pid: Option<u32>,
    /// What it said about itself, such as the address it is bound to; may be empty.
    pub note: String,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(formatter, "process {pid}")?,
            None => formatter.write_str("another process")?,
        }
        if self.note.is_empty() { Ok(()) } else { write!(formatter, " ({})", self.note) }
    }
}

/// The process that holds a data directory; `None` without a lock or a directory.
pub fn lock_holder(directory: &Path) -> std::io::Result<Option<LockHolder>> {
    let path = directory.join(FILE_NAME);
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // Shared, so that two callers do not take each other for the holder.
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(read_holder(&mut file))),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The lock, held until dropped.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Takes the lock; the error names its holder.
    pub(crate) fn take(directory: &Path, note: &str) -> Result<Self, OpenError> {
        let path = directory.join(FILE_NAME);
        let open = OpenOptions::new().create(true).read(true).write(true).truncate(false).open(&path);
        let mut file = open.map_err(|source| OpenError::File { path: path.clone(), source })?;
        match lock_with_retry(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::Held { directory: directory.to_owned(), holder: read_holder(&mut file) });
            }
            Err(TryLockError::Error(source)) => return Err(OpenError::File { path, source }),
        }
        let note = note.replace(['\r', '\n'], " ");
        let text = format!("{}\n{note}\n", std::process::id());
        let written = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
        written.map_err(|source| OpenError::File { path, source })?;
        Ok(Self { _file: file })
    }
}

/// [`lock_holder`] takes a shared lock for a moment, so one refusal proves nothing.
fn lock_with_retry(file: &File) -> Result<(), TryLockError> {
    for _ in 0..5 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            result => return result,
        }
    }
    file.try_lock()
}

fn read_holder(file: &mut File) -> LockHolder {
    let mut text = String::new();
    // Without a readable name the refusal still stands.
    if file.take(4096).read_to_string(&mut text).is_err() {
        text.clear();
    }
    let mut lines = text.lines();
    let pid = lines.next().and_then(|line| line.trim().parse().ok());
    LockHolder { pid, note: lines.next().unwrap_or_default().to_owned() }
}
