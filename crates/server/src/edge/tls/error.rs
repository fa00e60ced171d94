//! What is wrong with the files of a certificate, and what would be right.

use std::path::{Path, PathBuf};

/// Which of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsPart {
    /// The certificate chain.
    Certificate,
    /// The private key.
    Key,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub struct TlsError {
    part: TlsPart,
    file: PathBuf,
    problem: String,
    right: &'static str,
}

impl TlsError {
    pub(super) fn new(part: TlsPart, file: &Path, problem: String, right: &'static str) -> Self {
        Self { part, file: file.to_owned(), problem, right }
    }

    /// Which of the two files is to blame. A pair that does not fit is blamed on the key.
    #[must_use]
    pub fn part(&self) -> TlsPart {
        self.part
    }

    /// That file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What would be right.
    #[must_use]
    pub fn right(&self) -> &'static str {
        self.right
    }
}
