//! `channels.yaml`, read again and again by its content, because an edit may leave its size and time as they were.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use switchboard_engine::sha256;
use switchboard_host::config::regular_file;

use super::binding::{self, Binding};
use crate::definition_files::parse as parse_yaml;

/// The largest file.
const LARGEST: u64 = 1 << 20;

/// Reads the file.
pub(super) struct ChannelsFile {
    path: PathBuf,
    /// Most channels in it.
    max: usize,
    /// What counts; nothing before the first reading.
    known: Option<Content>,
    /// What was read since, while it may be in the middle of being written.
    unsettled: Option<Content>,
}

/// The digest of the file, or why it cannot be read. A file that is not there is empty.
type Content = Result<[u8; 32], String>;

impl ChannelsFile {
    pub(super) fn new(path: PathBuf, max: usize) -> Self {
        Self { path, max, known: None, unsettled: None }
    }

    /// Reads it; nothing if it is what it was, or if that is not certain yet. An operator who asks for a reading has written
    /// everything.
    pub(super) fn read(&mut self, is_asked_for: bool) -> Option<Result<Vec<Binding>, String>> {
        let source = read(&self.path).map_err(|error| error.to_string());
        let now: Content = source.as_ref().map(|source| sha256([&source[..]])).map_err(Clone::clone);
        if self.known.as_ref() == Some(&now) {
            self.unsettled = None;
            return None;
        }
        // An editor empties or removes a file before it writes it anew: that counts once it was read so twice in a row.
        let value = source.and_then(|source| parse_yaml(&source));
        let is_complete = value.as_ref().is_ok_and(|value| !value.is_null());
        let is_settled = self.known.is_none() || is_asked_for || is_complete || self.unsettled.as_ref() == Some(&now);
        if !is_settled {
            self.unsettled = Some(now);
            return None;
        }
        (self.known, self.unsettled) = (Some(now), None);
        let read = value.and_then(|value| binding::read(value, self.max));
        Some(read.map_err(|problem| format!("{}: {problem}", self.path.display())))
    }

    /// Whether the file is to be read again in a moment.
    pub(super) fn is_unsettled(&self) -> bool {
        self.unsettled.is_some()
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let bytes = match path.metadata() {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    if bytes > LARGEST {
        return Err(Error::new(ErrorKind::InvalidData, format!("it has {bytes} bytes, and may have {LARGEST}")));
    }
    regular_file::read(path)
}
