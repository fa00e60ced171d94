//! A few keys in memory.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_engine::{AgentScope, Caller, CallerId, CallerRole, Scopes};
use switchboard_server::{Authenticator, CallerIdentity};

#[derive(Default)]
pub(crate) struct Keyring {
    keys: Mutex<HashMap<String, Arc<CallerIdentity>>>,
}

impl Keyring {
    pub(crate) fn add(&self, token: &str, caller: &str, agents: AgentScope, role: CallerRole) {
        let scopes = Scopes { agents, role };
        let identity = CallerIdentity::new(Caller { id: CallerId::from(caller), scopes });
        self.keys.lock().insert(token.to_owned(), Arc::new(identity));
    }

    pub(crate) fn revoke(&self, token: &str) {
        if let Some(identity) = self.keys.lock().remove(token) {
            identity.revoked.cancel();
        }
    }
}

impl Authenticator for Keyring {
    fn authenticate(&self, token: &str) -> Option<Arc<CallerIdentity>> {
        assert_ne!(token, "bug", "this key is planted to see what a panic does");
        self.keys.lock().get(token).cloned()
    }
}
