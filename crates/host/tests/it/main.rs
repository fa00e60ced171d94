//! The demo agents as they are served: on the kernel and the real store.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod kernel;
mod probe;
#[cfg(not(feature = "nameservers"))]
mod without_features;
