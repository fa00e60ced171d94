//! The message that was accepted under an idempotency key.

use switchboard_engine::ids::Seq;
use switchboard_engine::store::{IdempotencyRecord, IdempotencyScope};

use super::Reader;
use crate::sqlite::columns::IdentifierText;
use crate::sqlite::query::optional_row;

impl Reader {
    pub(crate) fn find_send(&mut self, scope: IdempotencyScope) -> rusqlite::Result<Option<IdempotencyRecord>> {
        let Some(owner) = self.names.number(&self.connection, scope.owner.as_str())? else {
            return Ok(None);
        };
        let sql = "SELECT digest, task.id, seq FROM send JOIN task ON task.key = send.task_key \
                   WHERE send.owner = ?1 AND address = ?2 AND send.key = ?3";
        optional_row(&self.connection, sql, (owner, &scope.address, &scope.key), |row| {
            let IdentifierText(task) = row.get(1)?;
            let seq = Seq(row.get::<_, i64>(2)?.cast_unsigned());
            Ok(IdempotencyRecord { scope: scope.clone(), digest: row.get(0)?, task: Some(task.into()), seq })
        })
    }
}
