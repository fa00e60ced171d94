//! What any store owes the kernel (`suite`), run on each store there is, and what is SQLite's own (`sqlite`).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say so")]

mod build;
mod sqlite;
mod suite;
