//! Says whether an A2A agent keeps to the specification: what was asked, what came back, which rule says what should have
//! come, and how to put it right.
//!
//! The checks read answers as plain JSON, not with the lenient readers that the client has for agents in the wild: what
//! the client forgives is what is to be found here. They are safe: a few small messages, no load, and the only tasks that
//! are canceled are their own.

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
pub use report::{Counts, Finding, Outcome, Report};
pub use run::{Options, check};
