//! Child processes, with real ones: whatever they do, nothing of them is left.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod crowd;
mod ending;
mod exec_child;
mod input;
mod killed_server;
mod output;
mod stage;
mod start;
