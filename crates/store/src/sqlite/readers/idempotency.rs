//! What was accepted under an idempotency key.

use rusqlite::OptionalExtension;
use switchboard_engine::ids::Seq;
use switchboard_engine::store::{SendRecord, SendScope};

use super::Reader;
use crate::sqlite::columns::IdentifierText;

impl Reader {
    pub(crate) fn find_send(&mut self, scope: SendScope) -> rusqlite::Result<Option<SendRecord>> {
        let Some(owner) = self.names.number(&self.connection, scope.owner.as_str())? else {
            return Ok(None);
        };
        let sql = "SELECT digest, task.id, seq FROM send JOIN task ON task.key = send.task_key \
                   WHERE send.owner = ?1 AND address = ?2 AND send.key = ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_row((owner, &scope.address, &scope.key), |row| {
            let IdentifierText(task) = row.get(1)?;
            Ok((row.get::<_, [u8; 32]>(0)?, task, row.get::<_, i64>(2)?))
        });
        Ok(found.optional()?.map(|(digest, task, seq)| SendRecord {
            scope,
            digest,
            task: Some(task.into()),
            seq: Seq(seq.cast_unsigned()),
        }))
    }
}
