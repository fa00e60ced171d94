//! The `switchboard` program: its commands, the agents of `agents.yaml` and the wiring between the other crates.
//! It is a library so that tests reach the same parts as the binary does. To host an agent of your own, use
//! `switchboard-host`.

pub mod cli;
pub mod commands;
pub mod config;
pub mod control_client;
mod fleet;
mod programs;
