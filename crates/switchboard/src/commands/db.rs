//! `switchboard db`: looks after the data file. Checks and backups run beside a running server too.

pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod restore;
