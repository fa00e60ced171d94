//! The kernel: a task is its event log, there is one way to change it and one way to watch it.
//!
//! [`Engine`] takes messages in, runs [`Agent`]s on them and lets any number of readers follow. It knows no HTTP and
//! no SQL: what is durable is a [`store::Store`], who serves is a [`Directory`], what time it is a [`clock::Clock`].

mod agent;
mod append;
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
pub mod fold;
mod handle;
mod histories;
mod idempotency;
pub mod ids;
mod live;
pub mod manifest;
pub mod metric_definitions;
mod modes;
mod read;
pub mod reason;
mod recover;
mod settings;
mod shutdown;
pub mod store;
mod submit;
mod sweep;
pub mod transition;
mod turn;
mod watch;

pub use agent::{Agent, AgentError, Cause, Recovery, TaskView, Turn};
pub use caller::{AgentScope, Caller, Scopes};
pub use directory::{Address, Directory, FixedDirectory, Hosted, Switches};
pub use engine::{Engine, state_label};
pub use error::Error;
pub use event::{Kind, LoggedEvent, Usage};
pub use handle::{Stopped, TaskHandle};
pub use ids::{AgentName, CallerId, Cursor, Seq};
pub use manifest::{Extension, Manifest, Park, Replies, Skill, Start};
pub use read::{List, Listed, QUEUE_POSITION_KEY, TaskReading};
pub use settings::Settings;
pub use submit::{Send, Submitted};
pub use watch::{Answer, Streamed, Subscription, TaskStream, Until};
