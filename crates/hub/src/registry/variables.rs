//! The variables that registrations may use (`hub.registrations.env`), as the configuration was read last. They are asked for
//! whenever a secret is read: one that is taken off the list is not sent any more, and the tasks of an agent that names it wait
//! until it is listed again.

use std::sync::Arc;

use parking_lot::RwLock;
use switchboard_client::SecretPermit;
use switchboard_host::serve::ServerParts;

/// Clones share the list.
#[derive(Clone)]
pub(super) struct ListedVariables {
    names: Arc<RwLock<Vec<String>>>,
    /// One for all agents.
    permit: SecretPermit,
}

impl ListedVariables {
    /// Those of a server, also after its configuration was read again.
    pub(super) fn following(parts: &ServerParts) -> Self {
        let names = Arc::new(RwLock::new(parts.config.hub.registrations.env.clone()));
        let (listed, followed) = (Arc::clone(&names), Arc::clone(&names));
        parts.reloads.listen(move |config| followed.write().clone_from(&config.hub.registrations.env));
        let permit = SecretPermit::new(move |variable| match listed.read().iter().any(|name| name == variable) {
            true => Ok(()),
            false => Err(format!(
                "{variable} is not a variable that registrations may use: list it in hub.registrations.env, or update the agent"
            )),
        });
        Self { names, permit }
    }

    pub(super) fn lists(&self, variable: &str) -> bool {
        self.names.read().iter().any(|name| name == variable)
    }

    /// Permits to read what is listed.
    pub(super) fn permit(&self) -> SecretPermit {
        self.permit.clone()
    }
}
