//! Raises the limit of open files (`RLIMIT_NOFILE`). Many systems start a process with a low soft limit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use switchboard_egress as egress;

/// Open files besides connections: the database, the log, the control socket and its clients.
const OTHER_FILES: u64 = 64;

/// Open files of a connection to a webhook: two DNS queries, and then itself. Deliveries beyond the connections wait
/// and need none.
const PER_OUTBOUND_CONNECTION: u64 = 2;

/// Raises the soft limit to the hard limit. Returns a warning if that is not enough for so many connections, and for one
/// connection of each task that is followed on another server.
pub(super) fn raise(connections: usize, remote_tasks: usize) -> Option<String> {
    let outbound = egress::Options::default().connections as u64;
    let open = (connections as u64).saturating_add(remote_tasks as u64);
    let needed = open.saturating_add(outbound * PER_OUTBOUND_CONNECTION).saturating_add(OTHER_FILES);
    let before = getrlimit(Resource::Nofile);
    // Some systems have no hard limit and refuse a number that is too high; then ask for what is needed.
    for wanted in [before.maximum, Some(needed)] {
        let raises = before.current.is_some_and(|current| wanted.is_none_or(|wanted| wanted > current));
        let asked = Rlimit { current: wanted, maximum: before.maximum };
        if raises && setrlimit(Resource::Nofile, asked).is_ok() {
            break;
        }
    }
    let current = getrlimit(Resource::Nofile).current?;
    (current < needed).then(|| {
        format!(
            "the system allows this process {current} open files, and limits.connections ({connections}) with \
             limits.remoteTasks ({remote_tasks}) needs {needed}: raise the hard limit (ulimit -Hn, LimitNOFILE=) to \
             {needed}, or lower one of them"
        )
    })
}
