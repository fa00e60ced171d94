//! The outbox and the receiving end over a real store, a real kernel and receivers that listen on loopback; only time is
//! simulated.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod callbacks;
mod deliveries;
mod endpoints;
mod fairness;
mod forms;
mod large;
mod operators;
mod receiver;
mod replacing;
mod replays;
mod restarts;
mod retries;
mod setting;
mod test_kernel;
