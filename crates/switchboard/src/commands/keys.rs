//! `switchboard keys`: who may call. Works on the running server, at once, or on the file if none runs.

pub(crate) mod create;
pub(crate) mod list;
pub(crate) mod revoke;
