//! API keys. The store holds digests, never keys, and does not interpret scopes.

use rusqlite::{ErrorCode, params};
use switchboard_a2a::Timestamp;
use switchboard_engine::store::{StoreError, StoreFuture};

use super::SqliteStore;
use super::query::rows;
use super::readers::Reader;

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

impl SqliteStore {
    /// Stores a new key; refused with [`StoreError::KeyTaken`] if its id or digest is there already.
    pub fn create_key(&self, key: KeyRow) -> StoreFuture<()> {
        let write = self.queue.write_exclusive(move |session| {
            session.transaction(|session| {
                let sql = "INSERT INTO api_key (id, name, prefix, digest, scopes, created_at, expires_at, revoked_at) \
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
                let values = params![
                    key.id,
                    key.name,
                    key.prefix,
                    key.digest,
                    key.scopes,
                    key.created_at.0,
                    key.expires_at.map(|at| at.0),
                    key.revoked_at.map(|at| at.0),
                ];
                match session.connection.execute(sql, values) {
                    Ok(_) => Ok(true),
                    Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Ok(false),
                    Err(error) => Err(error),
                }
            })
        });
        Box::pin(async move { if write.await? { Ok(()) } else { Err(StoreError::KeyTaken) } })
    }

    /// Revokes a key from a time on; says whether there was such a key that was not revoked yet.
    pub fn revoke_key(&self, id: &str, at: Timestamp) -> StoreFuture<bool> {
        let id = id.to_owned();
        self.queue.write_exclusive(move |session| {
            session.transaction(|session| {
                let sql = "UPDATE api_key SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL";
                Ok(session.connection.execute(sql, (id, at.0))? > 0)
            })
        })
    }

    /// Every key, revoked and expired ones too, oldest first.
    pub fn list_keys(&self) -> StoreFuture<Vec<KeyRow>> {
        self.read(|reader| keys(reader))
    }

    /// The keys that are good at a time: what a server has to know.
    pub fn usable_keys(&self, now: Timestamp) -> StoreFuture<Vec<KeyRow>> {
        self.read(move |reader| Ok(keys(reader)?.into_iter().filter(|key| key.is_usable(now)).collect()))
    }
}

fn keys(reader: &Reader) -> rusqlite::Result<Vec<KeyRow>> {
    let sql = "SELECT id, name, prefix, digest, scopes, created_at, expires_at, revoked_at FROM api_key ORDER BY created_at, id";
    rows(&reader.connection, sql, [], |row| {
        Ok(KeyRow {
            id: row.get(0)?,
            name: row.get(1)?,
            prefix: row.get(2)?,
            digest: row.get(3)?,
            scopes: row.get(4)?,
            created_at: Timestamp(row.get(5)?),
            expires_at: row.get::<_, Option<i64>>(6)?.map(Timestamp),
            revoked_at: row.get::<_, Option<i64>>(7)?.map(Timestamp),
        })
    })
}
