//! Serializes paths as text for JSON output. Bytes of a path that are not UTF-8 are replaced.

use std::path::{Path, PathBuf};

use serde::Serializer;

/// One path.
pub(crate) fn one<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// One path, if there is one.
pub(crate) fn option<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => one(path, serializer),
        None => serializer.serialize_none(),
    }
}

/// Several.
pub(crate) fn list<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.display().to_string()))
}
