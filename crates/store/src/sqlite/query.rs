//! Cached statements in one call: all rows, the row if there is one, or a number.

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
