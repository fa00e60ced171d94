//! Cached statements in one call: all rows, the row if there is one, a number, or the first of several ordered sources.

use rusqlite::{Connection, OptionalExtension, Params, Row};

pub(crate) fn rows<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(params, read)?.collect()
}

pub(crate) fn optional_row<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    connection.prepare_cached(sql)?.query_row(params, read).optional()
}

/// The number that a query without parameters returns.
pub(crate) fn number(connection: &Connection, sql: &str) -> rusqlite::Result<u64> {
    connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0)).map(i64::cast_unsigned)
}

/// A count as a parameter.
pub(crate) fn limit(max: usize) -> i64 {
    i64::try_from(max).unwrap_or(i64::MAX)
}

/// The first of several sources, each in order.
pub(crate) struct Merged<T> {
    pub(crate) first: Vec<T>,
    wanted: usize,
}

impl<T: Ord> Merged<T> {
    pub(crate) fn new(wanted: usize) -> Self {
        Self { first: Vec::new(), wanted }
    }

    /// Merges a source until the rest of it cannot be among the wanted.
    pub(crate) fn merge(
        &mut self,
        connection: &Connection,
        sql: &str,
        params: impl Params,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let known = self.first.len();
        while self.first.len() - known < self.wanted
            && let Some(row) = rows.next()?
        {
            let next = read(row)?;
            if known >= self.wanted && self.first.get(known - 1).is_some_and(|last| next > *last) {
                break;
            }
            self.first.push(next);
        }
        self.first.sort_unstable();
        self.first.truncate(self.wanted);
        Ok(())
    }
}
