//! Deletes ended tasks, a few per transaction, and gives the space back to the file system.

use rusqlite::OptionalExtension;
use switchboard_engine::store::Phase;

use super::session::Session;
use super::tally::Counter;
use crate::sqlite::columns::phase_number;

/// Pages moved and cut off per transaction: about a millisecond.
const VACUUM_PAGES: i64 = 256;
/// Free pages are the cheapest room for new tasks, so a few are left.
const SPARE_PAGES: i64 = 256;

impl Session<'_> {
    /// Deletes those of the tasks that have ended, in one transaction; says how many there were.
    pub(crate) fn evict(&mut self, keys: &[i64]) -> rusqlite::Result<usize> {
        self.transaction(|session| {
            session.keep_numbers()?;
            let mut evicted = 0;
            for key in keys {
                evicted += usize::from(session.evict_one(*key)?);
            }
            for counter in session.flush_tally()? {
                session.drop_empty_counter(counter)?;
            }
            Ok(evicted)
        })
    }

    /// Gives a few free pages back; says whether there are more to give.
    pub(crate) fn vacuum_a_little(&mut self) -> rusqlite::Result<bool> {
        let free: i64 = self.connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
        if free <= SPARE_PAGES {
            return Ok(false);
        }
        let pages = VACUUM_PAGES.min(free - SPARE_PAGES);
        self.transaction(|session| {
            let mut statement = session.connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
            let mut rows = statement.query([])?;
            while rows.next()?.is_some() {}
            Ok(())
        })?;
        Ok(free - pages > SPARE_PAGES)
    }

    fn evict_one(&mut self, key: i64) -> rusqlite::Result<bool> {
        let connection = self.connection;
        let sql = "DELETE FROM task WHERE key = ?1 AND phase = ?2 RETURNING owner, agent, state, hidden, first_row";
        let mut delete_task = connection.prepare_cached(sql)?;
        let deleted = delete_task.query_row((key, phase_number(Phase::Done)), |row| {
            let (owner, agent, state, hidden) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            Ok((Counter { owner, agent, state, hidden, parked: false }, row.get::<_, Option<i64>>(4)?))
        });
        let Some((counter, first_row)) = deleted.optional()? else {
            return Ok(false);
        };
        self.tally.add(counter, -1);
        connection.prepare_cached("DELETE FROM event WHERE id = ?1")?.execute([first_row])?;
        connection.prepare_cached("DELETE FROM event WHERE task_key = ?1 AND first_seq > 1")?.execute([key])?;
        connection.prepare_cached("DELETE FROM send WHERE task_key = ?1")?.execute([key])?;
        Ok(true)
    }

    /// Callers come and go; their empty counters go with their last task.
    fn drop_empty_counter(&self, counter: Counter) -> rusqlite::Result<()> {
        let Counter { owner, agent, state, hidden, parked } = counter;
        let sql = "DELETE FROM tally WHERE owner = ?1 AND agent = ?2 AND state = ?3 AND hidden = ?4 AND parked = ?5 AND n = 0";
        self.connection.prepare_cached(sql)?.execute((owner, agent, state, hidden, parked))?;
        Ok(())
    }
}
