//! The kernel: a task is its event log, there is one way to change it and one way to watch it.
//!
//! [`Engine`] takes messages in, runs [`Agent`]s on them and lets any number of readers follow. It knows no HTTP and
//! no SQL: what is durable is a [`store::Store`], who serves is a [`Directory`], what time it is a [`clock::Clock`].

mod agent;
mod append;
mod aside;
mod burst;
pub mod caller;
mod cancel;
mod caps;
pub mod clock;
mod directory;
mod ended;
mod engine;
mod error;
pub mod event;
mod final_message;
pub mod fold;
mod handle;
mod hints;
mod histories;
mod idempotency;
pub mod ids;
mod list;
mod live;
mod log;
pub mod manifest;
pub mod metric_definitions;
mod modes;
mod output;
mod progress;
mod queue;
mod read;
pub mod reason;
mod recall;
mod recover;
mod settings;
mod shutdown;
pub mod store;
mod submit;
mod sweep;
mod tool_call;
pub mod transition;
mod turn;
mod watch;
mod webhook;

pub use agent::{Agent, AgentError, Cause, Recovery, TaskView, Turn};
pub use caller::{AgentScope, Caller, Scopes};
pub use directory::{Address, Asked, Directory, FixedDirectory, Hosted, Switches, WebhookEvents};
pub use engine::{Engine, state_label};
pub use error::Error;
pub use event::{Kind, LoggedEvent, Usage};
pub use handle::{Stopped, TaskHandle};
pub use hints::Hints;
pub use ids::{AgentName, CallerId, Cursor, Seq};
pub use list::{List, Listed, Listing};
pub use log::LogReader;
pub use manifest::{Extension, Manifest, Park, Replies, Skill, Start, Tool};
pub use progress::{PROGRESS_KEY, Progress};
pub use read::{QUEUE_POSITION_KEY, QUEUE_REASON_KEY, ReadWithin, TaskReading};
pub use settings::Settings;
pub use submit::{Send, Submitted};
pub use tool_call::{TOOL_CALL_URI, ToolCall};
pub use watch::{Answer, Streamed, Subscription, TaskStream, Until};
pub use webhook::Watcher;
