//! `switchboard db`: looks after the data file, beside a running server too.

pub mod backup;
pub mod check;
