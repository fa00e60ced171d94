//! A reader's cache of the name dictionary, which numbers callers and agents. Names are never changed or deleted, and a
//! reader sees committed ones only, so the cache never goes stale.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};

/// Beyond this the cache is cleared.
const CACHED: usize = 65_536;

#[derive(Default)]
pub(crate) struct Names {
    /// Shared with the tasks that are read.
    texts: HashMap<i64, Arc<str>>,
    numbers: HashMap<Box<str>, i64>,
}

impl Names {
    /// The number of a name; absent if no task has ever had it.
    pub(crate) fn number(&mut self, connection: &Connection, text: &str) -> rusqlite::Result<Option<i64>> {
        if let Some(number) = self.numbers.get(text) {
            return Ok(Some(*number));
        }
        let mut find = connection.prepare_cached("SELECT id FROM name WHERE text = ?1")?;
        let found: Option<i64> = find.query_row([text], |row| row.get(0)).optional()?;
        if let Some(number) = found {
            if self.numbers.len() >= CACHED {
                self.numbers.clear();
            }
            self.numbers.insert(text.into(), number);
        }
        Ok(found)
    }

    /// The name that has a number.
    pub(crate) fn text(&mut self, connection: &Connection, number: i64) -> rusqlite::Result<Arc<str>> {
        if self.texts.len() >= CACHED && !self.texts.contains_key(&number) {
            self.texts.clear();
        }
        match self.texts.entry(number) {
            std::collections::hash_map::Entry::Occupied(known) => Ok(known.get().clone()),
            std::collections::hash_map::Entry::Vacant(unknown) => {
                let mut find = connection.prepare_cached("SELECT text FROM name WHERE id = ?1")?;
                let text: String = find.query_row([number], |row| row.get(0))?;
                Ok(unknown.insert(text.into()).clone())
            }
        }
    }
}
