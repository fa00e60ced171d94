//! The hub: what runs the fleet between agents. Each part is a reader of the log, a task whose agent is the hub's own, or
//! a wrapper around an agent; the kernel stays the one place where a task changes.
#![expect(missing_docs, reason = "only what a name and its type do not say is written down")]

mod alerts;
mod api;
pub mod audit;
pub mod ceremonies;
mod channels;
mod consumers;
mod definition_files;
mod definition_reader;
mod dispatch;
mod experiments;
mod feed;
mod gate;
mod health;
mod hub;
mod inbox;
pub mod jobs;
mod journal_text;
mod metric_definitions;
mod planner;
mod projector;
pub mod registry;
pub mod remote;
pub mod remote_poll;
mod reply;
mod routes;
pub mod routing;
mod task_rows;
pub mod tasks;
mod topics;

pub use api::route_table;
pub use hub::{Hub, configured};
pub use metric_definitions::describe_metrics;
pub use projector::EndedTask;
