//! The path of the control socket. A socket address holds only about a hundred bytes, so a longer path goes through an
//! open handle of the directory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The socket's name in the data directory.
pub(super) const FILE_NAME: &str = "switchboard.sock";
/// The shortest limit of common systems is 104 bytes with a zero at the end.
const LONGEST_PATH: usize = 103;

/// A path to the socket that the system takes, good as long as this lives.
pub struct SocketPath {
    path: PathBuf,
    _directory: Option<File>,
}

impl SocketPath {
    /// The path of the socket in a data directory.
    pub fn new(data_dir: &Path) -> io::Result<Self> {
        let path = data_dir.join(FILE_NAME);
        if path.as_os_str().as_bytes().len() <= LONGEST_PATH {
            return Ok(Self { path, _directory: None });
        }
        let directory = File::open(data_dir)?;
        Ok(Self {
            path: PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(FILE_NAME),
            _directory: Some(directory),
        })
    }

    pub fn as_path(&self) -> &Path {
        &self.path
    }
}
