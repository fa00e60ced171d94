//! Says whether an A2A agent keeps to the specification: what was asked, what came back, which rule says what should have
//! come, and how to put it right.
//!
//! The checks read answers as plain JSON, not with the lenient readers that the client has for agents in the wild: what
//! the client forgives is what is to be found here. They are safe: a few small messages, no load, and the only tasks that
//! are canceled are their own.

mod answer;
mod artifacts;
mod busy;
mod card;
mod checks;
mod errors;
mod extensions;
mod identity;
mod junit;
mod line;
mod list;
mod operations;
mod push;
mod question;
mod receiver;
mod report;
mod run;
mod secrets;
mod security;
mod shared;
mod streaming;
mod subject;
mod verdict;
mod version;
mod wire;

pub use checks::{Check, Group, Severity, checks};
pub use report::{Counts, Finding, Outcome, Report};
pub use run::{Options, check};
