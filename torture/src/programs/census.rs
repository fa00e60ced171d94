//! Processes as the system shows them.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};

/// The variable by which programs of a server are known.
const MARKER: &str = "SWITCHBOARD_CHILD=";

/// A process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its parent's.
    pub parent: i32,
    /// What a server has put into its environment; empty for one that has ended.
    pub marker: Option<String>,
    /// What it was called with.
    pub command: String,
}

/// All processes.
#[must_use]
pub fn all() -> Vec<Process> {
    let folders = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok()).filter_map(process).collect()
}

/// Those with a marker that begins like this.
#[must_use]
pub fn marked(beginning: &str) -> Vec<Process> {
    let is_marked = |process: &Process| process.marker.as_ref().is_some_and(|marker| marker.starts_with(beginning));
    all().into_iter().filter(is_marked).collect()
}

fn process(pid: i32) -> Option<Process> {
    let file = |name: &str| std::fs::read(of(pid, name)).ok();
    let stat = file("stat")?;
    let stat = String::from_utf8_lossy(&stat);
    let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
    let environment = file("environ").unwrap_or_default();
    let mut variables = environment.split(|byte| *byte == 0);
    let marker = variables.find_map(|variable| std::str::from_utf8(variable).ok()?.strip_prefix(MARKER));
    let command = String::from_utf8_lossy(&file("cmdline").unwrap_or_default()).replace('\0', " ");
    Some(Process { pid, parent, marker: marker.map(str::to_owned), command })
}

/// How many files a process has open.
#[must_use]
pub fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// How much memory a process has, in KiB.
#[must_use]
pub fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    resident.and_then(|resident| resident.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

/// Ends a process that cannot say no. It may have ended by itself.
pub fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn of(pid: i32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}
