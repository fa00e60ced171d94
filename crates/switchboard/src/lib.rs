//! The `switchboard` program: its commands, its configuration and the wiring between the other crates.
//! It is a library so that tests, and whoever embeds Switchboard, reach the same parts as the binary does.
//!
//! To host an agent of your own, implement [`Agent`] and call [`host()`]; for several in one program, use [`Host`].

pub mod cli;
pub mod commands;
pub mod config;
pub mod control;
mod host;
pub mod keys;
pub mod logging;
pub mod printer;
pub mod serve;

pub use host::{Host, host};
pub use serve::StartError;
pub use switchboard_a2a::{Artifact, Json, Message, Metadata, Part, PartContent, Role, Task, TaskState};
pub use switchboard_engine::{
    Agent, AgentError, Cause, Hints, Manifest, Progress, Recovery, Replies, Skill, Start, Stopped, TaskHandle,
    TaskView, Tool, ToolCall, Turn, Usage,
};
