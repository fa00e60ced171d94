//! How many files and connections the system lets this process have open. Many systems start a process with room for
//! far fewer than it may ask for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use switchboard_egress as egress;

/// What is open besides connections, in and out: the database, the log, the control socket and those who talk to it.
const BESIDES: u64 = 64;

/// What a connection to a webhook may have open: two questions to nameservers, and then itself. Deliveries in excess of
/// these connections wait, so there is nothing else to count of them.
const PER_WAY_OUT: u64 = 2;

/// Asks for as many open files as this process may have. If that is not enough for so many connections: the warning.
pub(super) fn raise(connections: usize) -> Option<String> {
    let ways_out = egress::Options::default().connections as u64;
    let needed = (connections as u64).saturating_add(ways_out * PER_WAY_OUT).saturating_add(BESIDES);
    let before = getrlimit(Resource::Nofile);
    // Some systems name no highest number and refuse one that is too high; then what is needed will do.
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
            "the system allows this process {current} open files, and limits.connections ({connections}) needs \
             {needed}: raise the hard limit (ulimit -Hn, LimitNOFILE=) to {needed}, or lower limits.connections"
        )
    })
}
