//! The server through its public API: a whole server in this process, on a port of its own, spoken to in bytes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod api;
mod bindings;
mod edge;
