//! Command-line coding agents as agents: a program on this machine, started for each turn, behind a task.
//!
//! [`adapters`] turn a program's line protocol into events; [`process`] starts the program and kills its process tree;
//! the rest of the crate runs turns: queues, workspaces and git worktrees, approvals, deadlines, sessions, and the
//! events of the task.

#![expect(missing_docs, reason = "only what a name and its type do not say is written down")]

pub mod adapters;
mod approvals;
mod cli_agent;
mod deadlines;
mod environment;
pub mod exec_child;
mod git;
mod message_text;
mod metric_definitions;
pub mod process;
mod process_bound_position;
mod program;
mod repository_locks;
mod repository_summary;
mod request_options;
mod routing;
mod run;
mod sessions;
mod settings;
mod task_reporter;
mod transcript;
mod turn;
mod workspace;
mod worktree;

pub use cli_agent::{CliAgent, SharedResources};
pub use environment::{COMMON_VARIABLES, environment};
pub use metric_definitions::describe_metrics;
pub use program::{ProgramError, Version, find, is_tested, version};
pub use routing::{ByDifficulty, Classifier, Difficulty, Workers};
pub use settings::{INTERRUPT_TIMEOUT, ServerAccess, Settings, SkillSettings, Worker};
pub use worktree::WorktreePolicy;
