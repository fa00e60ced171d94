//! The guard and the client through their public door. Everything stays on loopback; nothing waits by the clock.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod addresses;
mod allowlist;
mod anywhere;
mod client_certificate;
mod connection_limit;
mod delivery;
mod encryption;
mod environment;
mod flood;
mod hostile;
mod names;
mod nameserver;
mod receiver;
mod reload;
mod streamer;
mod streams;
mod vectors;
