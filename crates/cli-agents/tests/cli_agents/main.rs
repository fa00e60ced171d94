//! Tests of command-line agents: real programs behind real tasks, with a clock that is turned by hand.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod answers;
mod approvals;
mod bench;
mod cancels;
mod diffs;
mod endings;
mod held_store;
mod hostile_copies;
mod limits;
mod mapping;
mod place;
mod queues;
mod recovery;
mod resuming;
mod routing;
mod sessions;
mod starts;
mod unfinished_copies;
mod wishes;
mod worktrees;
