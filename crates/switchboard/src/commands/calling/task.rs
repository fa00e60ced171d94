//! `switchboard task`: what became of a message that was sent, one file per command.

pub mod cancel;
pub mod download;
pub mod get;
pub mod list;
mod list_server;
pub mod push_config;
pub mod subscribe;
