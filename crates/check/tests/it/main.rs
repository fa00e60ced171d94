//! Agents with faults and agents without, and whether they are told apart.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod defects;
mod examined;
mod hostile_peers;
mod junit;
mod legal;
mod page;
mod peer;
