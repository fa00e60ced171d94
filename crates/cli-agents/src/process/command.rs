//! What is started, and why it may not be.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::MARKER;
use super::user::User;

/// A program to start. Never through a shell.
#[derive(Clone, Debug)]
pub struct ChildCommand {
    pub program: PathBuf,
    /// Its arguments, without its name.
    pub args: Vec<OsString>,
    /// All of its environment, but for the marker.
    pub env: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
    /// The user it runs as, if it is not this process's.
    pub user: Option<User>,
    /// Whether something will be written to it. Else its standard input is empty.
    pub input: bool,
    pub label: String,
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A relative path would depend on the working directory.
    #[error("the program {} has no absolute path: name it from the root, such as /usr/bin/agent", .0.display())]
    NotAbsolute(PathBuf),
    /// There is no file.
    #[error("there is no program {}: install it, or correct the path", .0.display())]
    NotFound(PathBuf),
    /// The file is no program.
    #[error("{} cannot be run: it is no file that may be executed; chmod +x makes it one", .0.display())]
    NotExecutable(PathBuf),
    /// There is no such directory.
    #[error("the working directory {} cannot be entered ({reason}): create it, or name another", cwd.display())]
    Directory {
        cwd: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Only root may switch to another user.
    #[error("running as user {name:?} needs root, and this process is uid {uid}: run it as root or as that user")]
    User {
        name: String,
        /// The user of this process.
        uid: u32,
    },
    /// The system did not start it.
    #[error("{} could not be started: {source}", program.display())]
    Start { program: PathBuf, source: io::Error },
    /// Nothing is started any more.
    #[error("no program is started any more: the server is stopping")]
    Closed,
}

impl ChildCommand {
    /// Whether it can be started, as far as one can tell before. What only the new process can find out it says on
    /// standard error, and exits with 126 or 127.
    pub(super) fn check(&self) -> Result<(), SpawnError> {
        let program = self.program.clone();
        if !program.is_absolute() {
            return Err(SpawnError::NotAbsolute(program));
        }
        match program.metadata() {
            Err(error) if is_missing(&error) => return Err(SpawnError::NotFound(program)),
            Err(source) => return Err(SpawnError::Start { program, source }),
            Ok(file) if !file.is_file() || file.permissions().mode() & 0o111 == 0 => {
                return Err(SpawnError::NotExecutable(program));
            }
            Ok(_) => {}
        }
        let directory = |reason: String| SpawnError::Directory { cwd: self.cwd.clone(), reason };
        let cwd = self.cwd.metadata().map_err(|error| directory(error.to_string()))?;
        if !cwd.is_dir() {
            return Err(directory("it is no directory".to_owned()));
        }
        let uid = rustix::process::geteuid();
        match self.user.as_ref().filter(|user| !user.is_current()) {
            Some(user) if !uid.is_root() => Err(SpawnError::User { name: user.name.clone(), uid: uid.as_raw() }),
            _ => Ok(()),
        }
    }

    /// How the helper is called that becomes it.
    pub(super) fn with_helper(&self, helper: &[OsString], marker: &str) -> Command {
        let mut words = helper.iter();
        let mut command = Command::new(words.next().cloned().unwrap_or_default());
        command.args(words).arg(std::process::id().to_string());
        if let Some(user) = self.user.as_ref().filter(|user| !user.is_current()) {
            let groups: Vec<String> = user.groups.iter().map(u32::to_string).collect();
            command.arg("--user").arg(format!("{}:{}:{}", user.uid, user.gid, groups.join(",")));
        }
        command.arg("--").arg(&self.program).args(&self.args);
        command.env_clear().envs(self.env.iter().map(|(name, value)| (name, value))).env(MARKER, marker);
        command.current_dir(&self.cwd);
        command.stdin(if self.input { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
