//! Hosts agents behind A2A with durable tasks: settings, server, keys, control socket and log around an [`Agent`].
//!
//! To host an agent of your own, implement [`Agent`] and call [`host()`]; for several in one program, use [`Host`].
//! The `switchboard` program is made of the same parts; those that only it needs are left out here.
//!
//! # Features
//! All are off unless they are asked for; `switchboard` has them all.
//! - `metrics`: `/metrics`, with the exporter for Prometheus. Without it a program may install a recorder of its own for
//!   the `metrics` facade, and gets the same metrics.
//! - `nameservers`: names of webhook receivers are looked up by asking nameservers, those of `webhooks.nameservers` too.
//!   Without it the operating system looks them up, under the same SSRF guard, and the setting is refused.
//! - `schema`: [`config`] has the JSON schema of `switchboard.yaml`.

pub mod config;
#[doc(hidden)]
pub mod control;
pub mod demo;
pub mod flags;
mod host;
#[doc(hidden)]
pub mod keys;
pub mod logging;
pub mod printer;
#[doc(hidden)]
pub mod redact;
#[doc(hidden)]
pub mod sanitize;
pub mod serve;

pub use host::{Host, host};
pub use serve::StartError;
pub use switchboard_a2a::{Artifact, Json, Message, Metadata, Part, PartContent, Role, Task, TaskState};
pub use switchboard_engine::{
    Agent, AgentError, Call, CallError, CallOwner, Called, Cause, Manifest, Progress, Recovery, Replies, RoutingHints,
    SendResult, Skill, Start, Stopped, TaskHandle, TaskView, Tool, ToolCall, Turn, Usage,
};
