//! Webhooks (push notifications): every event of a task is delivered in order and at least once, across failures of the
//! endpoint and restarts of this process.
//!
//! A webhook is a reader of its task's log with a durable cursor ([`switchboard_engine::store::webhooks`]). [`Webhooks`]
//! holds the configurations and the outbox, [`WebhookService`] is the operators' side, and [`CallbackReceiver`] receives the push
//! notifications of other servers.

#![expect(missing_docs, reason = "only what a name and its type do not say is written down")]

mod body_budget;
mod callback_receiver;
mod config;
mod endpoints;
mod journal;
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
mod signed_post;
mod step;

pub use callback_receiver::{AdmittedSender, CALLBACK_PATH, CallbackReceiver, CallbackWatch, ReceiveError, Received};
pub use options::Options;
pub use outbox::Webhooks;
pub use service::{DeliveryView, SecretView, WebhookService, WebhookView, state_named};
pub use signature::{Secret, sign};
pub use signed_post::{PostAttempt, PostOutcome, PostSender, SignedPost};
