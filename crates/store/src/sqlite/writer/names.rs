//! The dictionary of callers and agents as the writer knows it.

use std::collections::HashMap;

use rusqlite::OptionalExtension;

use super::statements::Statements;

/// Enough for every agent and all callers that are active at a time; beyond it the cache starts anew.
const CACHED: usize = 65_536;

/// Numbers by name. Holds numbers of the open transaction too, so it must be forgotten when that is rolled back.
#[derive(Default)]
pub(crate) struct Names {
    numbers: HashMap<Box<str>, i64>,
}

impl Names {
    /// The number of a name, given now if it has none.
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
