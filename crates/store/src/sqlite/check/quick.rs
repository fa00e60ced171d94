//! The quick check at every start: it reads both ends of every table and the newest tasks, so that its cost does not grow
//! with the file. SQLite itself sees a truncated file when it opens it.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use super::CheckError;
use crate::sqlite::columns::IdentifierText;
use crate::sqlite::connection;
use crate::sqlite::open::database_path;

const TASKS: i64 = 20;

/// Looks for damage in the database of a data directory, without reading all of it. An error means that the file cannot be
/// used; what is returned are problems of single tasks, one line each.
pub fn quick_check(directory: &Path) -> Result<Vec<String>, CheckError> {
    let mut connection = connection::open_for_reading(&database_path(directory))?;
    let snapshot = connection.transaction()?;
    ends(&snapshot)?;
    Ok(newest(&snapshot)?)
}

/// Reads the first and the last row of every table.
fn ends(connection: &Connection) -> rusqlite::Result<()> {
    let mut tables =
        connection.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")?;
    let mut rows = tables.query([])?;
    while let Some(row) = rows.next()? {
        let (table, sql): (String, String) = (row.get(0)?, row.get(1)?);
        let columns = match sql.contains("WITHOUT ROWID") {
            true => primary_key(connection, &table)?,
            false => vec!["rowid".to_owned()],
        };
        for direction in ["ASC", "DESC"] {
            let order: Vec<String> = columns.iter().map(|column| format!("\"{column}\" {direction}")).collect();
            let sql = format!("SELECT * FROM \"{table}\" ORDER BY {} LIMIT 1", order.join(", "));
            connection.query_row(&sql, [], |_| Ok(())).optional()?;
        }
    }
    Ok(())
}

fn primary_key(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut columns = connection.prepare("SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk")?;
    columns.query_map([table], |row| row.get(0))?.collect()
}

/// Checks that the newest tasks, which a crash could have damaged, have their first events.
fn newest(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut tasks = connection.prepare(
        "SELECT id FROM (SELECT * FROM task ORDER BY key DESC LIMIT ?1) AS task WHERE first_row IS NOT NULL \
         AND NOT EXISTS (SELECT 1 FROM event WHERE event.id = first_row AND task_key = task.key)",
    )?;
    let problems = tasks.query_map([TASKS], |row| {
        let IdentifierText(id) = row.get(0)?;
        Ok(format!("task {id}: its first events are missing"))
    })?;
    problems.collect()
}
