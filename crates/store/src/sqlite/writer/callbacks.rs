//! Updates of a callback receiver: deduplicated by id, in the order of arrival, the newest with their bodies.

use rusqlite::{OptionalExtension, params};
use switchboard_a2a::Timestamp;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::callbacks::UpdateAdded;

use super::session::Session;

/// Ids remembered for deduplication per task.
const KNOWN_IDS: i64 = 1_000;

/// How many updates of one task keep their bodies, and how large these may be together.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) updates: usize,
    pub(crate) bytes: u64,
}

impl Bounds {
    /// The newest update without a body, by the numbers and sizes of those that have one, the newest first. That one keeps
    /// its own whatever its size, or a large one could never be received.
    fn first_dropped(self, bodies: &[(i64, u64)]) -> Option<i64> {
        let mut bytes = 0_u64;
        let dropped = bodies.iter().enumerate().find(|(index, (_, size))| {
            bytes = bytes.saturating_add(*size);
            *index > 0 && (*index >= self.updates || bytes > self.bytes)
        });
        dropped.map(|(_, (number, _))| *number)
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
        let sql = "INSERT INTO callback_update (task_key, number, id, at, body) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.execute(sql, params![task.0, number, id, at.0, body])?;
        self.execute("UPDATE callback SET next_number = ?2 WHERE task_key = ?1", (task.0, number + 1))?;
        // The length of a body is known without reading it.
        let sql = "SELECT number, length(body) FROM callback_update INDEXED BY callback_update_waiting \
                   WHERE task_key = ?1 AND body IS NOT NULL ORDER BY number DESC";
        let bodies: Vec<(i64, u64)> = connection
            .prepare_cached(sql)?
            .query_map([task.0], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?
            .collect::<rusqlite::Result<_>>()?;
        if let Some(dropped) = most.first_dropped(&bodies) {
            let sql = "UPDATE callback_update INDEXED BY callback_update_waiting SET body = NULL \
                       WHERE task_key = ?1 AND number <= ?2 AND body IS NOT NULL";
            self.execute(sql, (task.0, dropped))?;
        }
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
