//! The client against a real server, against peers that answer what a test tells them to, and over a network that breaks.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod chaos;
mod conversation;
mod operations;
mod peers;
mod response_text;
mod wire;
mod world;

/// A hang guard: what has not happened after so long never will. It says nothing about speed.
const HANG_GUARD: std::time::Duration = std::time::Duration::from_secs(300);
