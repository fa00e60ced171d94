//! Webhooks: whoever sets one with a task is told of every change, in order, at least once, however often its endpoint
//! or this process goes away in between.
//!
//! A webhook is a reader of its task's log with a durable cursor ([`switchboard_engine::store::webhooks`]). [`Webhooks`]
//! takes configurations in, delivers, and tells operators how it goes. What other servers tell us comes in through
//! [`Callbacks`].

mod callbacks;
mod config;
mod deliver;
mod desk;
mod endpoints;
mod folds;
mod janitor;
mod large;
mod merge;
pub mod metric_definitions;
mod options;
mod outbox;
mod register;
mod render;
mod request;
mod schedule;
mod shares;
mod signature;
mod verdict;

pub use callbacks::{Admitted, CALLBACK_PATH, Callbacks, Follower, ReceiveError, Received, RemoteUpdate};
pub use desk::{DeliveryView, SecretView, WebhookDesk, WebhookView, state_name, state_named};
pub use options::Options;
pub use outbox::Webhooks;
pub use signature::{Secret, sign};
