//! The process table of this machine, read from `/proc`.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::MARKER;

/// An environment is at most a few megabytes; the marker of a process that hides it behind more than this is not read.
const LONGEST_FILE: u64 = 1 << 20;

/// How often the processes are listed in one look. More is needed only while new ones come all the time.
const LISTINGS: usize = 5;

/// Identifies a process until the next boot: a pid is reused, but not with the same start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct ProcessIdentity {
    pub(super) pid: i32,
    /// When it was started, in clock ticks since the machine was.
    pub(super) start: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) identity: ProcessIdentity,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    pub(super) is_zombie: bool,
    /// The value of [`MARKER`], where it has one and we may look.
    pub(super) marker: Option<String>,
}

/// All processes but this one and its ancestors, which must never be killed by mistake.
#[derive(Debug, Default)]
pub(super) struct ProcessTable {
    processes: Vec<Process>,
    places: HashMap<i32, usize>,
    by_parent: HashMap<i32, Vec<usize>>,
    by_group: HashMap<i32, Vec<usize>>,
    by_session: HashMap<i32, Vec<usize>>,
}

impl ProcessTable {
    /// Reads all processes, the newest first, and then those that are new since. So a process that forks and exits all
    /// the time is seen, too; to stop it, `meet` must kill it at once, for it is gone when the table is complete.
    ///
    /// # Errors
    /// If there is no `/proc`, or no file descriptor is free: an unreadable process must not be taken for exited.
    pub(super) fn read(mut meet: impl FnMut(&Process)) -> io::Result<Self> {
        let mut table = Self::default();
        let mut seen = spared()?;
        for _ in 0..LISTINGS {
            let mut new: Vec<i32> = pids()?.into_iter().filter(|pid| seen.insert(*pid)).collect();
            if new.is_empty() {
                break;
            }
            new.sort_unstable_by(|one, other| other.cmp(one));
            for pid in new {
                let Some(mut process) = stat(pid)? else { continue };
                if !process.is_zombie {
                    process.marker = marker(pid)?;
                }
                meet(&process);
                table.push(process);
            }
        }
        Ok(table)
    }

    fn push(&mut self, process: Process) {
        let place = self.processes.len();
        self.places.insert(process.identity.pid, place);
        self.by_parent.entry(process.parent).or_default().push(place);
        self.by_group.entry(process.group).or_default().push(place);
        self.by_session.entry(process.session).or_default().push(place);
        self.processes.push(process);
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter()
    }

    pub(super) fn get(&self, pid: i32) -> Option<&Process> {
        self.places.get(&pid).and_then(|place| self.processes.get(*place))
    }

    pub(super) fn children(&self, pid: i32) -> impl Iterator<Item = &Process> {
        self.at(self.by_parent.get(&pid))
    }

    /// The members of the process group or session with this id.
    pub(super) fn followers(&self, pid: i32) -> impl Iterator<Item = &Process> {
        self.at(self.by_group.get(&pid)).chain(self.at(self.by_session.get(&pid)))
    }

    fn at<'a>(&'a self, places: Option<&'a Vec<usize>>) -> impl Iterator<Item = &'a Process> {
        places.into_iter().flatten().filter_map(|place| self.processes.get(*place))
    }
}

#[cfg(test)]
impl FromIterator<Process> for ProcessTable {
    fn from_iter<T: IntoIterator<Item = Process>>(processes: T) -> Self {
        let mut table = Self::default();
        processes.into_iter().for_each(|process| table.push(process));
        table
    }
}

/// When a process was started, if it is there.
pub(super) fn start(pid: i32) -> Option<u64> {
    stat(pid).ok().flatten().map(|process| process.identity.start)
}

/// The boot id and the pid namespace: a container has its own pids.
pub(super) fn boot() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let numbering = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), numbering.display())
}

/// This process, its ancestors, and init.
fn spared() -> io::Result<HashSet<i32>> {
    let mut spared = HashSet::from([0, 1]);
    let mut pid = std::process::id().cast_signed();
    while spared.insert(pid) {
        pid = stat(pid)?.map_or(1, |process| process.parent);
    }
    Ok(spared)
}

fn pids() -> io::Result<Vec<i32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        pids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(pids)
}

fn stat(pid: i32) -> io::Result<Option<Process>> {
    Ok(content(pid, "stat")?.and_then(|stat| parse_stat(pid, &stat)))
}

/// A file of a process; none if it has exited or may not be read.
fn content(pid: i32, file: &str) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    let opened = File::open(format!("/proc/{pid}/{file}"));
    match opened.and_then(|file| file.take(LONGEST_FILE).read_to_end(&mut content)) {
        Ok(_) => Ok(Some(content)),
        Err(error) if is_shortage(&error) => Err(error),
        Err(_) => Ok(None),
    }
}

fn is_shortage(error: &io::Error) -> bool {
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    shortages.iter().any(|shortage| error.raw_os_error() == Some(shortage.raw_os_error()))
}

/// The name in the second field is the program's own choice, brackets, spaces and line ends included; what follows the
/// last bracket is not.
fn parse_stat(pid: i32, stat: &[u8]) -> Option<Process> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    // The first of these is the third in the manual.
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let number = |manual: usize| fields.get(manual - 3).and_then(|field| field.parse::<i32>().ok());
    let start = fields.get(22 - 3)?.parse().ok()?;
    let is_dead = matches!(*fields.first()?, "Z" | "X");
    Some(Process {
        identity: ProcessIdentity { pid, start },
        parent: number(4)?,
        group: number(5)?,
        session: number(6)?,
        // The first thread of a process may end before the others: then it looks like a zombie, and is none.
        is_zombie: is_dead && number(20)? <= 1,
        marker: None,
    })
}

fn marker(pid: i32) -> io::Result<Option<String>> {
    let variable = |entry: &[u8]| {
        let value = entry.strip_prefix(MARKER.as_bytes())?.strip_prefix(b"=")?;
        std::str::from_utf8(value).ok().map(str::to_owned)
    };
    let environment = content(pid, "environ")?.unwrap_or_default();
    Ok(environment.split(|byte| *byte == 0).find_map(variable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_name_and_a_dead_first_thread_is_not_a_dead_process() {
        let stat = b"42 (a) Z 1 (\n\xff) S 7 8 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 5555 1000 2\n";
        let process = parse_stat(42, stat).unwrap();
        assert_eq!(process.identity, ProcessIdentity { pid: 42, start: 5555 });
        assert_eq!((process.parent, process.group, process.session, process.is_zombie), (7, 8, 9, false));
        let threads = |count| format!("42 (x) Z 7 8 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 {count} 0 5555 1000 2\n");
        assert!(!parse_stat(42, threads(2).as_bytes()).unwrap().is_zombie);
        assert!(parse_stat(42, threads(1).as_bytes()).unwrap().is_zombie);
        for stat in ["", "42 (x", "42 (x) ", "42 (x) S 7", "42 (x) S a b c d e f g h i j k l m n o p q r s t"] {
            assert!(parse_stat(42, stat.as_bytes()).is_none(), "{stat:?}");
        }
    }
}
