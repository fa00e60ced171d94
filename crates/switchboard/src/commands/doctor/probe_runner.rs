//! Runs programs for the checks: a few at a time, each ended with its whole process tree.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use switchboard_cli_agents::process::{ChildCommand, Children, ChildrenOptions, Output, OutputLimits, User};
use switchboard_cli_agents::{Settings, Version, Worker, version};
use tokio::sync::Semaphore;

use switchboard_fleet::programs::children_options;

/// Concurrent programs: some of them keep a core busy for seconds.
const MAX_CONCURRENT: usize = 4;

/// Time limit of a git command, which usually takes milliseconds.
const GIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Starts programs. Clones share the slots.
#[derive(Clone)]
pub(super) struct ProbeRunner {
    children: Children,
    slots: Arc<Semaphore>,
    _folder: Arc<TemporaryFolder>,
}

/// A private folder, removed on drop.
struct TemporaryFolder(PathBuf);

impl ProbeRunner {
    pub(super) fn open() -> io::Result<Self> {
        let folder = TemporaryFolder::new()?;
        // Children that were inherited from the parent process are not ours to reap.
        let options = ChildrenOptions { exclusive: false, ..children_options(folder.0.clone()) };
        let (children, _) = Children::open(options)?;
        Ok(Self { children, slots: Arc::new(Semaphore::new(MAX_CONCURRENT)), _folder: Arc::new(folder) })
    }

    pub(super) async fn version(&self, settings: &Settings, worker: &Worker) -> Result<Version, String> {
        let _slot = self.slots.acquire().await;
        version(&self.children, settings, worker).await
    }

    /// Whether git answers a command in a folder with success.
    pub(super) async fn git(&self, folder: &Path, user: Option<&User>, words: &[&str]) -> Result<bool, String> {
        let _slot = self.slots.acquire().await;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.is_file());
        let program = program.and_then(|program| std::path::absolute(program).ok()).ok_or("git is not installed")?;
        let command = ChildCommand {
            program,
            // The check must not fail on the ownership of the repository.
            args: ["-c", "safe.directory=*"].iter().chain(words).map(OsString::from).collect(),
            env: vec![("PATH".into(), path), ("LC_ALL".into(), "C".into())],
            cwd: folder.to_owned(),
            user: user.cloned(),
            input: false,
            label: "git".to_owned(),
        };
        let limits = OutputLimits { line: 4 << 10, stderr: 4 << 10, output: 64 << 10 };
        let mut child = self.children.spawn(command, limits).await.map_err(|error| error.to_string())?;
        let ended = async {
            loop {
                if let Output::Ended(exit) = child.next().await {
                    return exit.code == Some(0);
                }
            }
        };
        let late = |_| format!("git did not answer within {} s", GIT_TIMEOUT.as_secs());
        tokio::time::timeout(GIT_TIMEOUT, ended).await.map_err(late)
    }

    pub(super) async fn close(&self) {
        self.children.close().await;
    }
}

impl TemporaryFolder {
    fn new() -> io::Result<Self> {
        let mut name = [0; 8];
        getrandom::fill(&mut name).map_err(io::Error::other)?;
        let name = format!("switchboard-doctor-{:016x}", u64::from_ne_bytes(name));
        let folder = std::env::temp_dir().join(name);
        // Fails if the folder exists: another user may have made it.
        DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // A folder that cannot be removed is empty, and the system cleans its temporary files up.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
