//! How many tasks there are, from the counters.

use switchboard_engine::store::Census;

use super::Reader;
use crate::sqlite::columns::state_from;

impl Reader {
    pub(crate) fn census(&mut self) -> rusqlite::Result<Census> {
        let mut census = Census::default();
        {
            let sql =
                "SELECT state, sum(n) FROM tally WHERE hidden = 0 GROUP BY state HAVING sum(n) > 0 ORDER BY state";
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                census.by_state.push((state_from(0, row.get(0)?)?, row.get::<_, i64>(1)?.cast_unsigned()));
            }
        }
        let parked: Vec<(i64, i64)> = {
            let sql =
                "SELECT owner, sum(n) FROM tally WHERE parked = 1 GROUP BY owner HAVING sum(n) > 0 ORDER BY owner";
            let mut statement = self.connection.prepare_cached(sql)?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        for (owner, count) in parked {
            let owner = self.names.text(&self.connection, owner)?;
            census.parked.push((owner.into(), count.cast_unsigned()));
        }
        Ok(census)
    }
}
