//! `switchboard keys`: who may call. Works on the running server, at once, or on the file if none runs.

pub mod create;
pub mod list;
pub mod revoke;
