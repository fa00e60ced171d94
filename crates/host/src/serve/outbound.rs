//! Outbound requests to addresses that callers chose, and their callbacks: egress client, webhooks, callback receiver.

use std::sync::Arc;

use switchboard_egress::Egress;
use switchboard_engine::Engine;
use switchboard_engine::store::ServerStore;
use switchboard_webhooks::{CallbackReceiver, Webhooks};

use crate::config::Config;
use crate::redact;
use crate::serve::StartError;
use crate::serve::settings;

/// The egress client and its users.
pub(super) struct Outbound {
    pub(super) egress: Egress,
    pub(super) webhooks: Webhooks,
    pub(super) callbacks: CallbackReceiver,
}

impl Outbound {
    /// Sets them up; nothing is sent before the webhooks are started.
    pub(super) async fn open(
        config: &Config,
        egress: Egress,
        callbacks: CallbackReceiver,
        engine: &Engine,
        store: &Arc<dyn ServerStore>,
    ) -> Result<Self, StartError> {
        let options = settings::webhooks(config);
        let webhooks = Webhooks::new(engine.clone(), store.clone(), egress.clone(), options);
        let webhooks = webhooks.await.map_err(StartError::Store)?.with_journal(store.clone(), redact::json);
        Ok(Self { egress, webhooks, callbacks })
    }
}
