//! How many tasks there are, from the task counters (table `tally`).

use switchboard_engine::store::TaskCounts;

use super::Reader;
use crate::sqlite::columns::state_from;
use crate::sqlite::query::rows;

impl Reader {
    pub(crate) fn census(&mut self) -> rusqlite::Result<TaskCounts> {
        let sql = "SELECT state, sum(n) FROM tally WHERE hidden = 0 GROUP BY state HAVING sum(n) > 0 ORDER BY state";
        let by_state = rows(&self.connection, sql, [], |row| {
            Ok((state_from(0, row.get(0)?)?, row.get::<_, i64>(1)?.cast_unsigned()))
        })?;
        let sql = "SELECT owner, sum(n) FROM tally WHERE parked = 1 GROUP BY owner HAVING sum(n) > 0 ORDER BY owner";
        let parked = rows(&self.connection, sql, [], |row| {
            let owner = self.names.text(&self.connection, row.get(0)?)?.into();
            Ok((owner, row.get::<_, i64>(1)?.cast_unsigned()))
        })?;
        Ok(TaskCounts { by_state, parked })
    }
}
