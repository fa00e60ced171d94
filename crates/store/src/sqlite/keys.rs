//! API keys in SQLite.

use rusqlite::{ErrorCode, params};
use switchboard_a2a::Timestamp;
use switchboard_engine::store::keys::{KeyRow, KeyStore};
use switchboard_engine::store::{StoreError, StoreFuture};

use super::SqliteStore;
use super::query::rows;
use super::readers::Reader;

impl KeyStore for SqliteStore {
    fn create_key(&self, key: KeyRow) -> StoreFuture<()> {
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

    fn revoke_key(&self, id: &str, at: Timestamp) -> StoreFuture<bool> {
        let id = id.to_owned();
        self.queue.write_exclusive(move |session| {
            session.transaction(|session| {
                let sql = "UPDATE api_key SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL";
                Ok(session.connection.execute(sql, (id, at.0))? > 0)
            })
        })
    }

    fn list_keys(&self) -> StoreFuture<Vec<KeyRow>> {
        self.read(|reader| keys(reader))
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
