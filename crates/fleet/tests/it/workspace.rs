//! A workspace folder whose files are written, moved and removed.

use std::path::{Path, PathBuf};

use switchboard_fleet::config::agent_files::{AgentFiles, AgentListing};
use switchboard_fleet::config::agents::Entry;
use tempfile::TempDir;

pub(crate) struct Workspace(TempDir);

impl Workspace {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let workspace = Self(TempDir::new().unwrap());
        files.iter().for_each(|(file, content)| workspace.write(file, content));
        workspace
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder().join(file)
    }

    pub(crate) fn write(&self, file: &str, content: &str) {
        let path = self.path(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn rename(&self, from: &str, to: &str) {
        std::fs::rename(self.path(from), self.path(to)).unwrap();
    }

    pub(crate) fn remove(&self, file: &str) {
        std::fs::remove_file(self.path(file)).unwrap();
    }

    /// Reads its files as a running server does.
    pub(crate) fn agent_files(&self) -> AgentFiles {
        AgentFiles::new(self.folder().to_owned(), Default::default())
    }
}

pub(crate) fn names(listing: &AgentListing) -> Vec<&str> {
    listing.entries.iter().map(|entry| entry.name().as_str()).collect()
}

pub(crate) fn entry<'a>(listing: &'a AgentListing, name: &str) -> &'a Entry {
    listing.entries.iter().find(|entry| entry.name().as_str() == name).unwrap()
}
