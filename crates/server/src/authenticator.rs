//! The caller of a request. The server takes a token from the request; an [`Authenticator`] finds whose it is.

use std::sync::Arc;

use switchboard_engine::{AgentScope, Caller, CallerId, CallerRole, Scopes};
use tokio_util::sync::CancellationToken;

use crate::response_budget::CallerUsage;

/// Finds the caller of a token. Called on every request, so it answers from memory; it compares in constant time.
pub trait Authenticator: Send + Sync + 'static {
    /// The caller of a token, if there is one and it is still good.
    fn authenticate(&self, token: &str) -> Option<Arc<CallerIdentity>>;
}

/// A caller and the end of its credentials. One value per key, shared by all its requests.
#[derive(Debug)]
pub struct CallerIdentity {
    /// The caller.
    pub caller: Caller,
    /// Cancelled when the key is revoked or has expired; open streams end then.
    pub revoked: CancellationToken,
    /// The caller's part of the response budget.
    pub(crate) usage: CallerUsage,
}

impl CallerIdentity {
    /// A caller whose credentials are good until further notice.
    pub fn new(caller: Caller) -> Self {
        Self::until(caller, CancellationToken::new())
    }

    /// A caller whose credentials are good until the token is cancelled.
    pub fn until(caller: Caller, revoked: CancellationToken) -> Self {
        Self { caller, revoked, usage: CallerUsage::default() }
    }

    /// A caller without a key, who may see what is public and nothing else.
    pub(crate) fn anonymous() -> Self {
        // Public cards need no key, the names of all agents do.
        let scopes = Scopes { agents: AgentScope::Only(Vec::new()), role: CallerRole::None };
        Self::new(Caller { id: CallerId::from("anonymous"), scopes })
    }
}
