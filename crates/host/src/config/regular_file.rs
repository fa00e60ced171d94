//! Reads the files of a configuration, regular ones only: to open a named pipe blocks until somebody writes to it, and a
//! server that reads its files again and again would hang for ever.

use std::io::{Error, ErrorKind};
use std::path::Path;

/// What is in a file.
pub fn read(path: &Path) -> Result<Vec<u8>, Error> {
    check(path)?;
    std::fs::read(path)
}

/// What is in a file of text.
pub fn read_to_string(path: &Path) -> Result<String, Error> {
    check(path)?;
    std::fs::read_to_string(path)
}

/// Refuses what is no regular file, wherever a link leads. To read a folder fails by itself.
fn check(path: &Path) -> Result<(), Error> {
    let found = path.metadata()?;
    if found.is_file() || found.is_dir() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
}
