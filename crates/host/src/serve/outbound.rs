//! What goes out to addresses that callers chose, and what comes back from there: the guarded client, webhooks,
//! callbacks.

use std::sync::Arc;

use switchboard_egress::Egress;
use switchboard_engine::Engine;
use switchboard_engine::clock::Clock;
use switchboard_store::SqliteStore;
use switchboard_webhooks::{CallbackReceiver, Webhooks};

use crate::config::Config;
use crate::serve::StartError;
use crate::serve::settings;

/// Everything for the way out.
pub(super) struct Outbound {
    pub(super) egress: Egress,
    pub(super) webhooks: Webhooks,
    pub(super) callbacks: CallbackReceiver,
}

impl Outbound {
    /// Sets it up; nothing goes out before the webhooks are started.
    pub(super) async fn open(
        config: &Config,
        engine: &Engine,
        store: &Arc<SqliteStore>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, StartError> {
        let egress = Egress::new(settings::egress(config)).map_err(StartError::Egress)?;
        let options = settings::webhooks(config);
        let webhooks = Webhooks::new(engine.clone(), Arc::clone(store), egress.clone(), options);
        let webhooks = webhooks.await.map_err(StartError::Store)?;
        let callbacks = CallbackReceiver::new(Arc::clone(store) as _, Arc::clone(clock));
        Ok(Self { egress, webhooks, callbacks })
    }
}
