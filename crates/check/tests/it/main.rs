//! Agents with faults, and whether they are found.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod defects;
mod page;
mod peer;
