//! The agents of a server, and what starts and stops with them.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use switchboard_egress::Egress;
use switchboard_engine::clock::Clock;
use switchboard_engine::store::ServerStore;
use switchboard_engine::{Callers, Directory, Engine, Hosted};
use switchboard_server::Front;
use switchboard_webhooks::CallbackReceiver;

use crate::config::Config;
use crate::serve::error::StartError;
use crate::serve::reload::ReloadListeners;

/// The agents of a server, and what starts and stops with it.
#[derive(Default)]
pub struct Fleet {
    /// The agents, in the order of their configuration.
    pub hosted: Vec<Hosted>,
    /// Finds them, in place of the fixed list of `hosted`, which is then ignored.
    pub directory: Option<Arc<dyn Directory>>,
    /// What starts and stops with the server, in this order: the child processes of command-line agents, the hub.
    pub lifecycles: Vec<Box<dyn Lifecycle>>,
    /// Agents elsewhere that are served for the first time, which the start-up banner names.
    pub first_served: Vec<FirstServed>,
}

/// An agent elsewhere that is served here for the first time.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FirstServed {
    /// Its name here.
    pub name: String,
    /// Its own address.
    pub url: String,
}

/// What a server is made of before its kernel has started.
#[derive(Clone)]
pub struct ServerParts {
    /// Locked by this process.
    pub data_dir: PathBuf,
    /// The settings it was started with.
    pub config: Arc<Config>,
    /// The clock everything runs by.
    pub clock: Arc<dyn Clock>,
    /// The open store.
    pub store: Arc<dyn ServerStore>,
    /// Finds callers by their ids.
    pub callers: Arc<dyn Callers>,
    /// The HTTP client behind the SSRF guard.
    pub egress: Egress,
    /// Receives the push notifications of remote agents.
    pub callbacks: CallbackReceiver,
    /// Tells of changed settings.
    pub reloads: ReloadListeners,
    /// The address that agent cards say.
    pub base_url: String,
    /// The address for clients on this machine.
    pub local_url: String,
}

/// Something that starts and stops with the server.
pub trait Lifecycle: Send + Sync {
    /// Called when the kernel has started and before the first request is read. What it returns is served beside A2A.
    fn start<'a>(&'a self, engine: &'a Engine) -> BoxFuture<'a, Result<Vec<Arc<dyn Front>>, StartError>>;

    /// Called when the kernel has drained and its store is closed; the server ends after it. Work that writes at its end
    /// is started with [`Engine::spawn`], which the drain waits for.
    fn stop(&self) -> BoxFuture<'_, ()>;
}

/// Makes the fleet of a server once its store is open.
pub type FleetFactory = Box<dyn FnOnce(ServerParts) -> BoxFuture<'static, Result<Fleet, StartError>> + Send>;

impl Fleet {
    /// These agents, without a lifecycle.
    pub fn of(hosted: Vec<Hosted>) -> FleetFactory {
        Box::new(move |_| Box::pin(std::future::ready(Ok(Self { hosted, ..Self::default() }))))
    }
}
