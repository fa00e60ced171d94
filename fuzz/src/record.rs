//! What is being tried right now, in a file: a stack overflow or an abort leaves no time to write it afterwards.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes in front of the input that say how long it is, because the file is never made shorter.
const LENGTH_BYTES: usize = 8;

/// The file.
pub struct Record {
    file: File,
    buffer: Vec<u8>,
}

impl Record {
    /// Makes or empties the file.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::create(path)?, buffer: Vec::new() })
    }

    /// Replaces what is recorded. One write: it reaches the system even if the process dies in the next instruction.
    pub fn write(&mut self, input: &[u8]) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.extend_from_slice(&(input.len() as u64).to_le_bytes());
        self.buffer.extend_from_slice(input);
        self.file.write_all_at(&self.buffer, 0)
    }
}

/// What was recorded last; none if nothing was.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let bytes = std::fs::read(path)?;
    let Some((length, input)) = bytes.split_first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    Ok(input.get(..length).map(<[u8]>::to_vec))
}
