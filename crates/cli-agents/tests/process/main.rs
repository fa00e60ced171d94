//! Child processes, with real ones: whatever they do, nothing of them is left.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod exec_child;
mod fixture;
mod input;
mod killed_server;
mod ledger;
mod many_children;
mod output;
mod start;
mod termination;
