//! The inputs that mutation starts from: `corpus/<target>/*`, small and taken from what real peers sent.

use std::io;
use std::path::{Path, PathBuf};

/// Where a target's inputs are.
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// A target's inputs in the order of their names, so that a seed means the same everywhere.
pub fn load(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let folder = folder(target);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(|error| named(&folder, &error))? {
        paths.push(entry?.path());
    }
    paths.sort();
    let inputs: Vec<Vec<u8>> = paths.iter().map(std::fs::read).collect::<io::Result<_>>()?;
    if inputs.is_empty() {
        return Err(io::Error::other(format!("{} is empty: put an input there", folder.display())));
    }
    Ok(inputs)
}

fn named(folder: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot read {}: {error}", folder.display()))
}
