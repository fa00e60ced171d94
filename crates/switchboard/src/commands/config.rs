//! `switchboard config`: looks at the configuration, and has a running server look again.

pub(crate) mod check;
pub(crate) mod reload;
pub(crate) mod schema;
pub(crate) mod show;
