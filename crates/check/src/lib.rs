//! Conformance checks of an A2A agent against the specification: what was sent, what came back, which rule it breaks,
//! and how to fix it.
//!
//! The checks read replies as plain JSON, not with the client's lenient decoders: what the client tolerates is what is
//! to be found here. They are safe: a few small messages, no load, and they cancel only their own tasks.

#![expect(missing_docs, reason = "only what a name and its type do not say is written down")]

mod agent;
mod artifacts;
mod caller;
mod card;
mod checks;
mod errors;
mod extensions;
mod interface;
mod junit;
mod list;
mod operations;
mod push;
mod receiver;
mod redact;
mod reply;
mod report;
mod request;
mod retry;
mod run;
mod run_once;
mod security;
mod streaming;
mod verdict;
mod version;
mod wire;

pub use checks::{Check, Group, Severity, checks};
pub use report::{CheckOutcome, CheckReport, Counts, Finding};
pub use run::{CheckOptions, check};
