//! The fleet: the agents of `agents.yaml` and `agents.d/`, checked, and made into agents that the kernel hosts.
#![expect(missing_docs, reason = "only what a name and its type do not say is written down")]

pub mod config;
mod hosted;
mod output_schema;
pub mod programs;
pub mod remote_client;

pub use hosted::{configured, declare_effects, served, skill};
pub use output_schema::with_output_schemas;
