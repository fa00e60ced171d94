//! The guard and the client through their public interface. Everything stays on loopback; nothing waits by the clock.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod addresses;
mod allowlist;
#[cfg(feature = "nameservers")]
mod anywhere;
mod client_certificate;
mod connection_limit;
mod delivery;
mod encryption;
mod environment;
mod flood;
mod hostile;
#[cfg(feature = "nameservers")]
mod names;
#[cfg(feature = "nameservers")]
mod nameserver;
mod receiver;
#[cfg(feature = "nameservers")]
mod reload;
mod streamer;
mod streams;
mod vectors;
