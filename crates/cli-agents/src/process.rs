//! Child processes that leave nothing behind: every run ends with its whole process tree.
//!
//! A coding agent starts shells, servers and browsers, and some of them outlive it, leave its process group or ignore
//! signals. So the process tree of a run is found by what a process cannot shed all at once: its parent, its process
//! group, its session and a marker variable in its environment. The parts:
//!
//! - the *spawner*, one thread that starts all children, because Linux ties the parent-death signal to a thread;
//! - the *reaper*, one thread that notices exits, kills process trees (`kill_tree`) and reaps zombies;
//! - the *guard*, a watchdog process that outlives a killed server and kills its orphans;
//! - the *ledger*, a folder with one pid file per run, from which guard and next server find orphans;
//! - [`Child`], the handle of one run: lines out, lines in, and two ways to end it.

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

/// The environment variable that marks every process of a run. Its value is the ledger's name, the server's and the
/// run's number, with dots between them.
pub const MARKER: &str = "SWITCHBOARD_CHILD";
