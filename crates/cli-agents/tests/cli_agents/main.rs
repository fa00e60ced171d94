//! Tests of command-line agents: real programs behind real tasks, with a clock that is turned by hand.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod answers;
mod approvals;
mod cancels;
mod deadlocks;
mod diffs;
mod endings;
mod environment;
mod fixture;
mod folders;
mod harness;
mod held_store;
mod hostile_worktrees;
mod limits;
mod mapping;
mod prompts;
mod questions;
mod queues;
mod recovery;
mod request_options;
mod resuming;
mod routing;
mod sessions;
mod starts;
mod unfinished_worktrees;
mod worktrees;
