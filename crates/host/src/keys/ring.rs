//! The key ring: all usable keys of a running server in memory, so that authentication reads no database.
//!
//! A server on loopback that never had a key is open: every request is from the caller `local`. Once a key exists,
//! revoked and expired ones included, every request needs one; revoking the last key must not open the server again.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use subtle::ConstantTimeEq;
use switchboard_a2a::Timestamp;
use switchboard_engine::clock::Clock;
use switchboard_engine::store::keys::KeyRow;
use switchboard_engine::{Caller, CallerId, Callers};
use switchboard_server::{Authenticator, CallerIdentity};
use tokio_util::sync::CancellationToken;

use crate::keys::scopes::KeyScopes;
use crate::keys::secret::digest;

pub struct KeyRing {
    loopback: bool,
    clock: Arc<dyn Clock>,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    /// Keys by the prefix of their digest. The timing of a lookup reveals at most that prefix, from which no key can be
    /// derived; the rest is compared in constant time.
    keys: HashMap<[u8; 8], Vec<KeyEntry>>,
    /// What all keys are called, those that are revoked or expired too: what they did is still shown.
    names: HashMap<String, String>,
    /// Cancelled once there is, or ever was, a key.
    closed: CancellationToken,
}

struct KeyEntry {
    id: String,
    digest: [u8; 32],
    expires_at: Option<Timestamp>,
    identity: Arc<CallerIdentity>,
}

impl KeyRing {
    /// The ring of a server: whether it listens on loopback only, and every key that is stored. Must be called within
    /// the runtime, because keys that expire are watched.
    pub fn new(loopback: bool, clock: Arc<dyn Clock>, rows: &[KeyRow]) -> Self {
        let ring = Self { loopback, clock, state: RwLock::default() };
        for row in rows {
            ring.insert(row);
        }
        ring
    }

    /// Adds a key; from now on requests need one.
    pub fn add(&self, row: &KeyRow) {
        if self.is_open() {
            tracing::info!("the first key exists: from now on every request needs one");
        }
        self.insert(row);
    }

    fn insert(&self, row: &KeyRow) {
        let mut state = self.state.write();
        state.closed.cancel();
        state.names.insert(row.id.clone(), row.name.clone());
        if !row.is_usable(self.clock.now()) {
            return;
        }
        let scopes: KeyScopes = match serde_json::from_str(&row.scopes) {
            Ok(scopes) => scopes,
            Err(error) => {
                tracing::error!(key = row.id, %error, "the stored scopes of a key cannot be read, so it is refused");
                return;
            }
        };
        let revoked = CancellationToken::new();
        if let Some(expires_at) = row.expires_at {
            tokio::spawn(end_at(expires_at, revoked.clone(), Arc::clone(&self.clock)));
        }
        let caller = Caller { id: CallerId::from(row.id.as_str()), scopes: scopes.into() };
        state.keys.entry(prefix(&row.digest)).or_default().push(KeyEntry {
            id: row.id.clone(),
            digest: row.digest,
            expires_at: row.expires_at,
            identity: Arc::new(CallerIdentity::until(caller, revoked)),
        });
    }

    /// Removes a key and ends its open requests.
    pub fn revoke(&self, id: &str) {
        let mut state = self.state.write();
        for entries in state.keys.values_mut() {
            entries.retain(|key| {
                if key.id == id {
                    key.identity.revoked.cancel();
                }
                key.id != id
            });
        }
        state.keys.retain(|_, entries| !entries.is_empty());
    }

    /// Whether requests are served without a key.
    pub fn is_open(&self) -> bool {
        self.loopback && !self.state.read().closed.is_cancelled()
    }

    /// Cancelled once a key is, or ever was, there.
    pub fn keyed(&self) -> CancellationToken {
        self.state.read().closed.clone()
    }
}

impl Authenticator for KeyRing {
    fn authenticate(&self, token: &str) -> Option<Arc<CallerIdentity>> {
        let digest = digest(token);
        let state = self.state.read();
        let entries = state.keys.get(&prefix(&digest))?;
        let key = entries.iter().find(|key| bool::from(key.digest.ct_eq(&digest)))?;
        key.is_usable(self.clock.now()).then(|| Arc::clone(&key.identity))
    }
}

/// Looks through all keys: it is asked by jobs, not by requests.
impl Callers for KeyRing {
    fn find(&self, id: &CallerId) -> Option<Caller> {
        let local = Caller::local();
        if *id == local.id {
            return self.is_open().then_some(local);
        }
        let state = self.state.read();
        let key = state.keys.values().flatten().find(|key| key.identity.caller.id == *id)?;
        key.is_usable(self.clock.now()).then(|| key.identity.caller.clone())
    }

    fn name(&self, id: &CallerId) -> Option<String> {
        self.state.read().names.get(id.as_str()).cloned()
    }
}

impl KeyEntry {
    fn is_usable(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|at| at > now)
    }
}

fn prefix(digest: &[u8; 32]) -> [u8; 8] {
    let mut prefix = [0; 8];
    prefix.copy_from_slice(&digest[..8]);
    prefix
}

/// Ends the open requests of a key when it expires, unless it is revoked first.
async fn end_at(expires_at: Timestamp, revoked: CancellationToken, clock: Arc<dyn Clock>) {
    tokio::select! {
        () = clock.sleep_until(expires_at) => revoked.cancel(),
        () = revoked.cancelled() => {}
    }
}
