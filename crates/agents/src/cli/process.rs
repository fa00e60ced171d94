//! Child processes that leave nothing behind.
//!
//! A coding agent starts shells, servers and browsers, and some of them outlive it, leave its group or ignore signals.
//! So everything that belongs to a run is found by what it cannot all shed at once: its parent, its group, its session
//! and a variable in its environment. Four parts do the work:
//!
//! - the *spawner*, one thread that starts all children, because Linux ties "die with your parent" to a thread;
//! - the *undertaker*, one thread that notices exits, sends signals in order, and reaps;
//! - the *ledger*, a folder with one small file per run, from which the next server knows what a killed one left;
//! - [`Child`], what the caller holds: lines out, lines in, and two ways to end.

mod child;
mod children;
mod command;
mod ending;
mod input;
mod ledger;
mod lines;
mod orphans;
mod output;
mod quarry;
mod remains;
mod signal;
mod spawner;
mod stderr;
mod table;
mod undertaker;
mod user;

pub use child::Child;
pub use children::{Children, ChildrenOptions};
pub use command::{ChildCommand, SpawnError};
pub use input::WriteError;
pub use orphans::Orphans;
pub use output::{Output, OutputLimits};
pub use remains::Remains;
pub use user::{User, UserError};

/// The variable by which everything of a run is known, wherever it has gone. Its value is the ledger's name, a dot and
/// the run's number.
pub const MARKER: &str = "SWITCHBOARD_CHILD";
