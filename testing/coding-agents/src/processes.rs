//! The processes that belong to one fixture, whichever process started them and wherever they have gone: what they were given as their
//! home tells it, and where they are.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How often processes are looked for that should go away.
const LOOK: Duration = Duration::from_millis(50);

/// A process, as /proc shows it.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    /// What it was started with, for people.
    pub(crate) command: String,
}

/// Those that have this home or are in this folder.
pub(crate) fn of(home: &Path, folder: &Path) -> Vec<Process> {
    let home = [b"HOME=", home.as_os_str().as_bytes()].concat();
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|pid| find(pid, &home, folder)).collect()
}

fn find(pid: i32, home: &[u8], folder: &Path) -> Option<Process> {
    let entry = PathBuf::from(format!("/proc/{pid}"));
    let environment = std::fs::read(entry.join("environ")).unwrap_or_default();
    let is_at_home = environment.split(|byte| *byte == 0).any(|variable| variable == home);
    let is_there = std::fs::read_link(entry.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
    if !is_at_home && !is_there {
        return None;
    }
    let stat = std::fs::read_to_string(entry.join("stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split(' ');
    // One that has ended is there until its parent has noticed.
    let state = fields.next().filter(|state| !["Z", "X"].contains(state));
    let parent = state.and_then(|_| fields.next()?.parse().ok())?;
    let command = std::fs::read(entry.join("cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    Some(Process { pid, parent, command: command.chars().take(120).collect() })
}

/// Waits until there are none; says which there still are if that takes too long.
pub(crate) async fn gone(patience: Duration, look: impl Fn() -> Vec<Process>) -> anyhow::Result<()> {
    let until = Instant::now() + patience;
    loop {
        let left = look();
        if left.is_empty() {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < until, "after {patience:?} there still are {left:?}");
        tokio::time::sleep(LOOK).await;
    }
}

/// Kills a process as nothing can prevent.
pub(crate) fn kill(pid: i32) -> anyhow::Result<()> {
    let pid = Pid::from_raw(pid).ok_or_else(|| anyhow::anyhow!("{pid} is no process"))?;
    Ok(kill_process(pid, Signal::KILL)?)
}
