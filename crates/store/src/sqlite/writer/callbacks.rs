//! Updates of a callback receiver: deduplicated by id, in the order of arrival, until they are taken.

use rusqlite::{OptionalExtension, params};
use switchboard_a2a::Timestamp;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::callbacks::UpdateAdded;

use super::session::Session;

/// Ids remembered for deduplication per task.
const KNOWN_IDS: i64 = 1_000;

/// The most updates of one task that may wait.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) updates: usize,
    pub(crate) bytes: u64,
}

impl Bounds {
    /// Whether a body may wait too. The only one always may, or a large one could never be received.
    fn admit(self, waiting: i64, waiting_bytes: i64, body: &[u8]) -> bool {
        let bytes = waiting_bytes.unsigned_abs().saturating_add(body.len() as u64);
        usize::try_from(waiting).is_ok_and(|waiting| waiting < self.updates) && (waiting == 0 || bytes <= self.bytes)
    }
}

impl Session<'_> {
    /// `None` if the task has no callback (any more).
    pub(crate) fn add_update(
        &mut self,
        task: TaskKey,
        id: &str,
        body: &[u8],
        at: Timestamp,
        most: Bounds,
    ) -> rusqlite::Result<Option<UpdateAdded>> {
        let connection = self.connection;
        let mut find = connection.prepare_cached("SELECT next_number FROM callback WHERE task_key = ?1")?;
        let Some(number) = find.query_row([task.0], |row| row.get::<_, i64>(0)).optional()? else {
            return Ok(None);
        };
        let sql = "SELECT 1 FROM callback_update WHERE task_key = ?1 AND id = ?2";
        if connection.prepare_cached(sql)?.exists((task.0, id))? {
            return Ok(Some(UpdateAdded::Known));
        }
        // The length of a body is known without reading it.
        let sql = "SELECT count(*), coalesce(sum(length(body)), 0) \
                   FROM callback_update INDEXED BY callback_update_waiting WHERE task_key = ?1 AND body IS NOT NULL";
        let (waiting, bytes) =
            connection.prepare_cached(sql)?.query_row([task.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if !most.admit(waiting, bytes, body) {
            return Ok(Some(UpdateAdded::Full));
        }
        let sql = "INSERT INTO callback_update (task_key, number, id, at, body) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.execute(sql, params![task.0, number, id, at.0, body])?;
        self.execute("UPDATE callback SET next_number = ?2 WHERE task_key = ?1", (task.0, number + 1))?;
        let sql = "DELETE FROM callback_update WHERE task_key = ?1 AND number <= ?2 AND body IS NULL";
        self.execute(sql, (task.0, number - KNOWN_IDS))?;
        Ok(Some(UpdateAdded::New(number)))
    }

    pub(crate) fn evict_callback(&mut self, task: i64) -> rusqlite::Result<()> {
        if self.execute("DELETE FROM callback WHERE task_key = ?1", [task])? > 0 {
            self.execute("DELETE FROM callback_update WHERE task_key = ?1", [task])?;
        }
        Ok(())
    }
}
