//! The `switchboard` program: its commands, the agents of `agents.yaml` and the wiring between the other crates.
//! It is a library so that tests and fuzzing reach the same configuration as the binary does. To host an agent of your
//! own, use `switchboard-host`.

mod cli;
mod commands;
pub mod config;
mod control_client;
mod fleet;
mod programs;

pub use cli::run;
