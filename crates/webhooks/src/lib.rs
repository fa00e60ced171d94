//! Webhooks: whoever sets one with a task is told of every change, in order, at least once, however often its endpoint
//! or this process goes away in between.
//!
//! A webhook is a reader of its task's log with a durable cursor ([`switchboard_engine::store::webhooks`]). [`Webhooks`]
//! takes configurations in, delivers, and tells operators how it goes. What other servers tell us comes in through
//! [`Callbacks`].

mod body_budget;
mod callbacks;
mod config;
mod endpoints;
mod log_cache;
mod merge;
pub mod metric_definitions;
mod options;
mod outbox;
mod outcome;
mod push_configs;
mod render;
mod request;
mod retention;
mod retry_policy;
mod service;
mod signature;
mod step;

pub use callbacks::{Admitted, CALLBACK_PATH, Callbacks, Follower, ReceiveError, Received, RemoteUpdate};
pub use options::Options;
pub use outbox::Webhooks;
pub use service::{DeliveryView, SecretView, WebhookDesk, WebhookView, state_name, state_named};
pub use signature::{Secret, sign};
