//! The writer's cache of the name dictionary, which numbers callers and agents.

use std::collections::HashMap;

use rusqlite::OptionalExtension;

use super::statements::Statements;

/// Enough for every agent and all callers active at a time; beyond it the cache is cleared.
const CACHED: usize = 65_536;

/// Numbers by name, also those of the open transaction, so it is cleared when that is rolled back.
#[derive(Default)]
pub(crate) struct Names {
    numbers: HashMap<Box<str>, i64>,
}

impl Names {
    /// The number of a name; a new name is inserted.
    pub(crate) fn number(&mut self, statements: &mut Statements<'_>, text: &str) -> rusqlite::Result<i64> {
        if let Some(number) = self.numbers.get(text) {
            return Ok(*number);
        }
        let found = statements.find_name.query_row([text], |row| row.get(0)).optional()?;
        let number = match found {
            Some(number) => number,
            None => statements.insert_name.insert([text])?,
        };
        if self.numbers.len() >= CACHED {
            self.numbers.clear();
        }
        self.numbers.insert(text.into(), number);
        Ok(number)
    }

    pub(crate) fn forget(&mut self) {
        self.numbers.clear();
    }
}
