//! Remote agents: agents of other servers, hosted here under a name of ours. Each turn sends its message to the remote
//! server, follows the task there, and tells what it does as events of the task here.
//!
//! Only the task stream of the client tells events; push notifications and polls only say when to look. What was sent is
//! saved before it is sent, so that the next process knows whether to send, to look for, or to follow a remote task.

mod callbacks;
pub(crate) mod cancel;
mod emit;
mod failure_text;
mod find;
mod follow;
mod followed_time;
mod from_config;
mod give_up;
mod manifest;
mod outage;
mod outgoing;
mod plan;
mod prepare;
mod saved;
pub(crate) mod serve;
mod settings;
mod translate;
mod turn;
mod usage;
mod waiting;

use std::sync::Arc;

use switchboard_client::{CallContext, Client};
use switchboard_engine::clock::Clock;
use switchboard_engine::{Agent, AgentError, AgentName, Manifest, Recovery, TaskHandle, TaskView, Turn};

use crate::registry::CircuitBreaker;
pub use callbacks::Callbacks;
pub use from_config::callback_base;
pub use manifest::manifest;
pub(crate) use saved::saved_state;
pub use saved::{Attached, Saved, Sending};
pub use settings::{RemoteSettings, RepliesAs, Resend};
pub use translate::REMOTE_KEY;
use turn::RemoteTurn;
pub(crate) use waiting::{fold_of_waiting, waiting_task};

/// What a remote agent is made of.
#[derive(Clone)]
pub struct RemoteParts {
    /// Its name here.
    pub name: AgentName,
    /// Its address, by which a turn or a job of another process knows whether it is the agent that has the remote task.
    pub url: String,
    /// Calls it.
    pub client: Client,
    /// Shared by everything that calls it.
    pub breaker: Arc<CircuitBreaker>,
    pub settings: RemoteSettings,
    /// Where it sends push notifications to; none if it is not to.
    pub callbacks: Option<Callbacks>,
    pub clock: Arc<dyn Clock>,
    /// What is said of it: see [`manifest`].
    pub manifest: Manifest,
}

/// An agent of another server as an agent of this one.
pub struct RemoteAgent {
    parts: RemoteParts,
}

impl RemoteParts {
    /// The context of a call that belongs to no turn.
    pub(crate) fn call_context(&self, parent_id: Option<String>) -> CallContext {
        let extensions = outgoing::extensions_of_any_call(&self.manifest.extensions);
        CallContext { parent_id, extensions, ..CallContext::default() }
    }

    /// Whether a remote task is at another address than this agent, which has not heard of it, or has another one of its id.
    pub(crate) fn is_elsewhere(&self, url: Option<&str>) -> bool {
        url.is_some_and(|url| url != self.url)
    }
}

impl RemoteAgent {
    pub fn new(parts: RemoteParts) -> Self {
        Self { parts }
    }
}

impl Agent for RemoteAgent {
    fn manifest(&self) -> Manifest {
        self.parts.manifest.clone()
    }

    fn run(&self, turn: Turn, task: TaskHandle) -> impl Future<Output = Result<(), AgentError>> + Send {
        // Not an `async fn`, whose arguments keep their space beside what they are moved into.
        Box::new(RemoteTurn::new(&self.parts, turn, task)).run()
    }

    /// What becomes of the turn depends on what was saved, so it always runs again.
    async fn recover(&self, _: &TaskView) -> Recovery {
        Recovery::Resume
    }
}
