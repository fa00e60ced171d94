//! `switchboard task`: what became of a message that was sent, one file per command.

pub(crate) mod cancel;
pub(crate) mod download;
pub(crate) mod get;
pub(crate) mod list;
mod list_server;
pub(crate) mod push_config;
pub(crate) mod subscribe;
