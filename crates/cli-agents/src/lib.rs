//! Command-line coding agents as agents: a program on this machine, started for each turn, behind a task.
//!
//! What the programs are told and what their lines mean is the business of [`adapters`]; in the rest of the crate they are
//! started, watched, asked for and ended, and what they tell becomes their task's events.

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

pub use cli_agent::{CliAgent, Shared};
pub use environment::{COMMON_VARIABLES, environment};
pub use metric_definitions::describe_metrics;
pub use program::{ProgramError, Version, find, is_tested, version};
pub use routing::{ByDifficulty, Classifier, Difficulty, Workers};
pub use settings::{Settings, SkillSettings, Worker};
pub use worktree::WorktreePolicy;
