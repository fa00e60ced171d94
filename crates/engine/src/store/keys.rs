//! API keys in the store: digests, never keys, with scopes that the store does not interpret.

use switchboard_a2a::Timestamp;

use super::StoreFuture;

/// One API key as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// Its name in commands and logs.
    pub id: String,
    /// The name its maker gave it.
    pub name: String,
    /// The beginning of the key itself, so that people can tell their keys apart.
    pub prefix: String,
    /// The digest of the key.
    pub digest: [u8; 32],
    /// What it allows, as JSON.
    pub scopes: String,
    pub created_at: Timestamp,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

impl KeyRow {
    /// Whether the key is good at a time.
    pub fn is_usable(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires_at| now < expires_at)
    }
}

/// Durable API keys.
pub trait KeyStore: Send + Sync + 'static {
    /// Stores a new key; refused with [`StoreError::KeyTaken`](super::StoreError::KeyTaken) if its id or digest is there
    /// already.
    fn create_key(&self, key: KeyRow) -> StoreFuture<()>;

    /// Revokes a key from a time on; says whether there was such a key that was not revoked yet.
    fn revoke_key(&self, id: &str, at: Timestamp) -> StoreFuture<bool>;

    /// Every key, revoked and expired ones too, oldest first.
    fn list_keys(&self) -> StoreFuture<Vec<KeyRow>>;
}
