//! The key service: creates, lists and revokes keys, in the store and at once in the key ring of a running server.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchboard_a2a::Timestamp;
use switchboard_engine::clock::{Clock, later};
use switchboard_engine::store::StoreError;
use switchboard_engine::store::keys::{KeyRow, KeyStore};

use crate::keys::ring::KeyRing;
use crate::keys::scopes::KeyScopes;
use crate::keys::secret::{self, digest, new_id};

/// The longest name; it only has to fit a line of a list.
const LONGEST_NAME: usize = 100;

/// Why a key could not be made or revoked.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The name is of no use in a list.
    #[error("the name of a key may have up to {LONGEST_NAME} characters and no line breaks")]
    Name,
    #[error("there is no key {0:?}; switchboard keys list shows them all")]
    Unknown(String),
    #[error("the key {0} is already revoked")]
    AlreadyRevoked(String),
    #[error("the system gave no random numbers: {0}")]
    Random(#[from] getrandom::Error),
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("the scopes cannot be stored: {0}")]
    Scopes(#[from] serde_json::Error),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewKey {
    /// What its maker calls it; may be empty.
    pub name: String,
    pub scopes: KeyScopes,
    /// For how long; without it for good.
    pub expires_in_ms: Option<u64>,
}

/// A key that was just made.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedKey {
    /// The key itself, never to be seen again.
    pub secret: String,
    /// The key as lists show it.
    #[serde(flatten)]
    pub key: KeyView,
    /// Whether it is the first, so that callers need a key from now on.
    pub first: bool,
}

/// A key as lists show it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyView {
    /// What it is called in commands and logs, and the owner of the tasks it starts.
    pub id: String,
    pub name: String,
    /// The beginning of the key itself.
    pub prefix: String,
    /// What it allows; absent if what is stored cannot be read, in which case the key is refused.
    pub scopes: Option<KeyScopes>,
    /// Whether it is `usable`, `expired` or `revoked`.
    pub state: String,
    pub created_at: Timestamp,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

impl KeyView {
    fn of(row: KeyRow, now: Timestamp) -> Self {
        let state = match row.revoked_at {
            Some(_) => "revoked",
            None if row.is_usable(now) => "usable",
            None => "expired",
        };
        Self {
            state: state.to_owned(),
            scopes: serde_json::from_str(&row.scopes).ok(),
            id: row.id,
            name: row.name,
            prefix: row.prefix,
            created_at: row.created_at,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
        }
    }
}

pub struct KeyService {
    store: Arc<dyn KeyStore>,
    clock: Arc<dyn Clock>,
    ring: Option<Arc<KeyRing>>,
}

impl KeyService {
    /// A service over a store, with the key ring of the running server, if there is one.
    pub fn new(store: Arc<dyn KeyStore>, clock: Arc<dyn Clock>, ring: Option<Arc<KeyRing>>) -> Self {
        Self { store, clock, ring }
    }

    /// Makes a key. In force when this returns.
    pub async fn create(&self, new: NewKey) -> Result<CreatedKey, KeyError> {
        let name = new.name.trim();
        if name.chars().count() > LONGEST_NAME || name.contains(char::is_control) {
            return Err(KeyError::Name);
        }
        let first = self.store.list_keys().await?.is_empty();
        let secret = secret::generate()?;
        let now = self.clock.now();
        let row = KeyRow {
            id: new_id()?,
            name: name.to_owned(),
            prefix: secret::prefix(&secret).to_owned(),
            digest: digest(&secret),
            scopes: serde_json::to_string(&new.scopes)?,
            created_at: now,
            expires_at: new
                .expires_in_ms
                .map(|milliseconds| later(now, std::time::Duration::from_millis(milliseconds))),
            revoked_at: None,
        };
        self.store.create_key(row.clone()).await?;
        if let Some(ring) = &self.ring {
            ring.add(&row);
        }
        Ok(CreatedKey { secret, key: KeyView::of(row, now), first })
    }

    pub async fn list(&self) -> Result<Vec<KeyView>, KeyError> {
        let now = self.clock.now();
        let rows = self.store.list_keys().await?;
        Ok(rows.into_iter().map(|row| KeyView::of(row, now)).collect())
    }

    /// Revokes a key, and ends its open requests.
    pub async fn revoke(&self, id: &str) -> Result<KeyView, KeyError> {
        let now = self.clock.now();
        let revoked = self.store.revoke_key(id, now).await?;
        let row = self.store.list_keys().await?.into_iter().find(|row| row.id == id);
        let Some(row) = row else {
            return Err(KeyError::Unknown(id.to_owned()));
        };
        if !revoked {
            return Err(KeyError::AlreadyRevoked(row.id));
        }
        if let Some(ring) = &self.ring {
            ring.revoke(id);
        }
        Ok(KeyView::of(row, now))
    }
}
