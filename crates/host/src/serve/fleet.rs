//! The agents of a server, and what starts and stops with them.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use switchboard_engine::clock::Clock;
use switchboard_engine::{Engine, Hosted};

use crate::serve::error::StartError;

/// The agents of a server, and what starts and stops with it.
pub struct Fleet {
    /// The agents, in the order of their configuration.
    pub hosted: Vec<Hosted>,
    /// What starts and stops with the server, such as the child processes of command-line agents.
    pub lifecycle: Option<Box<dyn Lifecycle>>,
}

/// Something that starts and stops with the server.
pub trait Lifecycle: Send + Sync {
    /// Called when the kernel has started and before the first request is read.
    fn start(&self, engine: &Engine);

    /// Called when the kernel has drained; the server ends after it.
    fn stop(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// Makes the fleet of a server once its data directory is locked.
pub type FleetFactory = Box<dyn FnOnce(&Path, &Arc<dyn Clock>) -> Result<Fleet, StartError> + Send>;

impl Fleet {
    /// These agents, without a lifecycle.
    pub fn of(hosted: Vec<Hosted>) -> FleetFactory {
        Box::new(move |_, _| Ok(Self { hosted, lifecycle: None }))
    }
}
