//! Child processes that leave nothing behind.
//!
//! A coding agent starts shells, servers and browsers, and some of them outlive it, leave its group or ignore signals.
//! So everything that belongs to a run is found by what it cannot all shed at once: its parent, its group, its session
//! and a variable in its environment. Five parts do the work:
//!
//! - the *spawner*, one thread that starts all children, because Linux ties "die with your parent" to a thread;
//! - the *reaper*, one thread that notices exits, sends signals in order, and reaps;
//! - the *guard*, a process that outlives a killed server and ends what that leaves;
//! - the *ledger*, a folder with one small file per run, from which guard and next server know what a killed one left;
//! - [`Child`], what the caller holds: lines out, lines in, and two ways to end.

mod child;
mod children;
mod command;
mod guard;
mod input;
mod kill_tree;
mod ledger;
mod line_splitter;
mod orphans;
mod output;
mod process_table;
mod process_tree;
mod reaper;
mod signal;
mod spawner;
mod stderr;
mod tree_exit;
mod user;

pub use child::Child;
pub use children::{Children, ChildrenOptions};
pub use command::{ChildCommand, SpawnError};
pub use guard::{GUARD, guard};
pub use input::WriteError;
pub use orphans::Orphans;
pub use output::{Output, OutputLimits};
pub use tree_exit::TreeExit;
pub use user::{User, UserError};

/// The variable by which everything of a run is known, wherever it has gone. Its value is the ledger's name, the server's
/// and the run's number, with dots between them.
pub const MARKER: &str = "SWITCHBOARD_CHILD";
