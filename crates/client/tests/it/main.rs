//! The client against a real server, against peers that answer what a test tells them to, and over a network that breaks.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod chaos;
mod conversation;
mod operations;
mod peers;
mod response_text;
mod wire;
mod world;
