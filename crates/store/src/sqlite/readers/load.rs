//! One task by its public id.

use switchboard_a2a::TaskId;
use switchboard_engine::store::Loaded;

use super::Reading;
use super::row::TASK_COLUMNS;
use crate::sqlite::columns::Identifier;

impl Reading {
    pub(crate) fn load(&mut self, id: &TaskId) -> rusqlite::Result<Option<Loaded>> {
        let sql = format!("SELECT {TASK_COLUMNS} FROM task WHERE id = ?1");
        match self.task(&sql, [Identifier::new(id.as_str())])? {
            Some(task) => self.loaded(task).map(Some),
            None => Ok(None),
        }
    }
}
