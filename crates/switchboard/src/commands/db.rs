//! `switchboard db`: looks after the data file. Checks and backups run beside a running server too.

pub mod backup;
pub mod check;
pub mod restore;
