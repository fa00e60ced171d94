//! The kernel through its public door, on the real store.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod faults;
mod kernel;

mod aside;
mod direct;
mod endings;
mod held;
mod idempotency;
mod invariants;
mod leaving;
mod limits;
mod listing;
mod parked;
mod races;
mod recovery;
mod recovery_order;
mod routing;
mod saying;
mod turns;
mod watching;
mod webhooks;
