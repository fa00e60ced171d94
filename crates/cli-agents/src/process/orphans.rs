//! Orphans: the processes that a killed server has left, found and killed by its guard or by the next server.

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use tracing::{info, warn};

use super::kill_tree::{KillTree, Progress};
use super::ledger::Ledger;
use super::process_table::{ProcessIdentity, ProcessTable};
use super::process_tree::{Marker, ProcessTree};

/// How often the process table is read.
const ROUND: Duration = Duration::from_millis(20);

/// A server start waits for its orphans at most about this long.
const LONGEST: Duration = Duration::from_secs(5);

/// What became of the orphans of an earlier server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orphans {
    pub ended: usize,
    /// How many would not end.
    pub left: usize,
}

/// Kills the orphans in the ledger; blocks until they have exited. To know that there are none takes two looks at all
/// processes of the machine, so a first start, which cannot have any, does not look.
pub(super) fn end(ledger: &Ledger, grace: Duration) -> io::Result<Orphans> {
    if ledger.is_new() {
        return Ok(Orphans::default());
    }
    let entries = ledger.entries()?;
    let roots = entries.iter().filter_map(|(_, record)| ledger.identity(record)).collect();
    let mut markers: Vec<Marker> = entries.iter().map(|(_, record)| Marker::Run(record.marker.clone())).collect();
    markers.push(Marker::All(ledger.name().to_owned()));
    let orphans = end_those(roots, markers, grace)?;
    for (entry, _) in entries {
        entry.remove();
    }
    if orphans.ended > 0 {
        info!(ended = orphans.ended, "processes that an earlier server has left were ended");
    }
    Ok(orphans)
}

/// Kills the process trees of these roots and every process with one of these markers.
pub(super) fn end_those(roots: Vec<ProcessIdentity>, markers: Vec<Marker>, grace: Duration) -> io::Result<Orphans> {
    let grace = grace.min(LONGEST / 2);
    let mut kill_tree = KillTree::new(ProcessTree::new(roots, markers), None, grace, LONGEST - grace);
    let left = loop {
        kill_tree.begin_round();
        let table = ProcessTable::read(|process| kill_tree.kill_on_sight(process))?;
        match kill_tree.round(&table, &HashSet::new(), &HashSet::new()) {
            Progress::Going => std::thread::sleep(ROUND),
            Progress::Over => break Vec::new(),
            Progress::GivenUp(left) => break left,
        }
    };
    if !left.is_empty() {
        let pids: Vec<i32> = left.iter().map(|process| process.pid).collect();
        warn!(left = ?pids, "processes that an earlier server has left could not be ended");
    }
    Ok(Orphans { ended: kill_tree.signalled().saturating_sub(left.len()), left: left.len() })
}
