//! The `switchboard` program: its commands and the wiring between the other crates. To host an agent of your own, use
//! `switchboard-host`.

mod cli;
mod commands;
mod control_client;

pub use cli::run;
