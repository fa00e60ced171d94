//! API keys as stored.

use switchboard_a2a::Timestamp;

use super::Reader;
use crate::sqlite::keys::KeyRow;

impl Reader {
    pub(crate) fn keys(&self) -> rusqlite::Result<Vec<KeyRow>> {
        let sql = "SELECT id, name, prefix, digest, scopes, created_at, expires_at, revoked_at FROM api_key ORDER BY created_at, id";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([], |row| {
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
        })?;
        rows.collect()
    }
}
