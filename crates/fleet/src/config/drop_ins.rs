//! The files of `agents.d/`: which of them are read, and in which order. It is listed here for the start and for a running
//! server alike, so that both read the same files.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// The folder, in that of the workspace.
pub(crate) const FOLDER: &str = "agents.d";

/// Extensions of files that hold agents as a rule, however they are written. Two of them are read, in small letters.
const NEARLY_READ: [&str; 3] = ["yaml", "yml", "json"];

/// What is in the folder. Paths are relative to the workspace folder, and ordered by name, so that the order is the same
/// everywhere.
#[derive(Debug, Default)]
pub(crate) struct DropIns {
    /// What is read.
    pub(crate) files: Vec<PathBuf>,
    /// What is not read, and has an extension like that of files that are.
    pub(crate) unread: Vec<PathBuf>,
    /// Why the folder, or something in it, cannot be listed.
    pub(crate) errors: Vec<Error>,
}

impl DropIns {
    /// Lists the folder in that of a workspace. One that is not there holds nothing.
    pub(crate) fn list(workspace: &Path) -> Self {
        let mut found = Self::default();
        let entries = match std::fs::read_dir(workspace.join(FOLDER)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return found,
            Err(error) => {
                found.errors.push(error);
                return found;
            }
        };
        for entry in entries {
            match entry {
                Ok(entry) => found.add(Path::new(FOLDER).join(entry.file_name())),
                Err(error) => found.errors.push(error),
            }
        }
        found.files.sort();
        found.unread.sort();
        found
    }

    fn add(&mut self, path: PathBuf) {
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let Some(extension) = path.extension().filter(|_| !is_hidden) else { return };
        if extension == "yaml" || extension == "yml" {
            self.files.push(path);
        } else if NEARLY_READ.iter().any(|known| extension.eq_ignore_ascii_case(known)) {
            self.unread.push(path);
        }
    }
}

/// Whether a path is that of the folder itself.
pub(crate) fn is_folder(path: &Path) -> bool {
    path == Path::new(FOLDER)
}
