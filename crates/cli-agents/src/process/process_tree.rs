//! The process tree of a run: which processes belong to it, by parent, process group, session and marker.

use std::collections::HashSet;

use super::process_table::{Process, ProcessIdentity, ProcessTable};

/// Identifies the processes of a run, or of all runs of an earlier server.
#[derive(Debug)]
pub(super) struct ProcessTree {
    /// The processes that were started for it.
    roots: Vec<ProcessIdentity>,
    /// The markers in their environment.
    markers: Vec<Marker>,
    /// Processes found before that are still there: one that has lost its parent and wiped its environment is known by
    /// this alone.
    known: HashSet<ProcessIdentity>,
}

/// Which markers count.
#[derive(Debug)]
pub(super) enum Marker {
    Run(String),
    /// All that begin with this and a dot: those of a ledger, or of one server with it.
    All(String),
}

impl Marker {
    fn is_on(&self, process: &Process) -> bool {
        let Some(marker) = process.marker.as_deref() else { return false };
        match self {
            Self::Run(run) => marker == run,
            Self::All(begin) => marker.strip_prefix(begin.as_str()).is_some_and(|rest| rest.starts_with('.')),
        }
    }
}

impl ProcessTree {
    pub(super) fn new(roots: Vec<ProcessIdentity>, markers: Vec<Marker>) -> Self {
        Self { roots, markers, known: HashSet::new() }
    }

    /// Whether the process is one that was started for the run.
    pub(super) fn is_root(&self, process: &Process) -> bool {
        self.roots.contains(&process.identity)
    }

    /// Whether a process belongs to the tree whatever its parents are. `leader` is an unreaped root.
    pub(super) fn is_tied(&self, process: &Process, leader: Option<i32>) -> bool {
        let is_following = leader.is_some_and(|leader| process.group == leader || process.session == leader);
        is_following || self.is_known(process)
    }

    fn is_known(&self, process: &Process) -> bool {
        let is_marked = self.markers.iter().any(|marker| marker.is_on(process));
        is_marked || self.is_root(process) || self.known.contains(&process.identity)
    }

    /// All processes of the tree, zombies included, with the `orphans` that the reaper adds to it.
    pub(super) fn find<'a>(&mut self, table: &'a ProcessTable, orphans: &HashSet<ProcessIdentity>) -> Vec<&'a Process> {
        let mut found = HashSet::new();
        let mut members: Vec<&Process> = Vec::new();
        let mut join = |process: &'a Process, members: &mut Vec<&'a Process>| {
            if found.insert(process.identity) {
                members.push(process);
            }
        };
        for process in table.all() {
            if self.is_known(process) || orphans.contains(&process.identity) {
                join(process, &mut members);
            }
        }
        for root in &self.roots {
            // A pid is not reused while a process group or session has it, so these are the root's, unless the pid is
            // another process's already.
            if table.get(root.pid).is_none_or(|process| process.identity == *root) {
                for process in table.followers(root.pid).filter(|process| process.identity.start >= root.start) {
                    join(process, &mut members);
                }
            }
        }
        let mut next = 0;
        while let Some(member) = members.get(next).copied() {
            next += 1;
            let below = table.children(member.identity.pid).chain(table.followers(member.identity.pid));
            for process in below.filter(|process| process.identity.start >= member.identity.start) {
                join(process, &mut members);
            }
        }
        self.known = found;
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MYSELF: i32 = 100;

    fn process(pid: i32, parent: i32, group: i32, session: i32) -> Process {
        let identity = ProcessIdentity { pid, start: u64::try_from(pid).unwrap() };
        Process { identity, parent, group, session, is_zombie: false, marker: None }
    }

    fn marked(mut process: Process, marker: &str) -> Process {
        process.marker = Some(marker.to_owned());
        process
    }

    fn found(process_tree: &mut ProcessTree, processes: Vec<Process>) -> Vec<i32> {
        let table: ProcessTable = processes.into_iter().collect();
        let mut pids: Vec<i32> =
            process_tree.find(&table, &HashSet::new()).iter().map(|process| process.identity.pid).collect();
        pids.sort_unstable();
        pids
    }

    fn run() -> ProcessTree {
        ProcessTree::new(vec![ProcessIdentity { pid: 200, start: 200 }], vec![Marker::Run("ledger.1".to_owned())])
    }

    #[test]
    fn members_are_found_by_parent_group_session_and_marker() {
        let processes = vec![
            process(200, MYSELF, 200, 200),
            process(201, 200, 201, 201), // its own session, below the root
            process(202, 1, 200, 200),   // lost its parent
            process(203, 1, 203, 200),   // its own group
            process(204, 1, 201, 201),   // in the session of a member
            marked(process(205, 1, 205, 205), "ledger.1"),
            process(206, 205, 206, 206),
            marked(process(207, 1, 207, 207), "ledger.12"), // another run's
            marked(process(208, 1, 208, 208), "ledger"),
            process(209, MYSELF, 50, 50), // a stranger among our children
        ];
        assert_eq!(found(&mut run(), processes.clone()), [200, 201, 202, 203, 204, 205, 206]);
        let mut all = ProcessTree::new(Vec::new(), vec![Marker::All("ledger".to_owned())]);
        assert_eq!(found(&mut all, processes), [205, 206, 207]);
    }

    #[test]
    fn a_member_stays_known_and_a_number_that_has_passed_to_another_process_ties_nothing() {
        let root = || process(200, MYSELF, 200, 200);
        let started = |process: Process, start: u64| Process {
            identity: ProcessIdentity { start, ..process.identity },
            ..process
        };
        let mut process_tree = run();
        assert_eq!(found(&mut process_tree, vec![root(), process(201, 200, 201, 201)]), [200, 201]);
        let zombie = Process { is_zombie: true, ..root() };
        assert_eq!(
            found(&mut process_tree, vec![zombie, process(201, 1, 201, 201)]),
            [200, 201],
            "nothing ties it now"
        );
        assert_eq!(found(&mut process_tree, vec![started(process(201, 1, 201, 201), 999)]), [0; 0], "a reused number");
        let (other, below) = (started(process(200, 1, 200, 200), 999), started(process(300, 200, 200, 200), 1000));
        assert_eq!(found(&mut run(), vec![other, below]), [0; 0], "the root's number is another's");
        let left = vec![process(300, 1, 300, 200), process(40, 1, 200, 200)];
        assert_eq!(found(&mut run(), left), [300], "the session of a root that is gone, less what is older");
        let neighbours = vec![process(200, MYSELF, 50, 50), process(60, 50, 60, 50), process(300, 50, 50, 50)];
        assert_eq!(found(&mut run(), neighbours), [200], "a root in the server's session draws no neighbours in");
    }
}
