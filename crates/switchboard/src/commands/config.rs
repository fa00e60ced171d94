//! `switchboard config`: looks at the configuration without starting anything.

pub mod check;
pub mod schema;
