//! `switchboard config`: looks at the configuration, and has a running server look again.

pub mod check;
pub mod reload;
pub mod schema;
pub mod show;
