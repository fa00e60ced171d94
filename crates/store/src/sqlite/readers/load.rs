//! One task by its public id.

use switchboard_a2a::TaskId;
use switchboard_engine::store::{Loaded, TaskRow};

use super::Reading;
use super::row::{StoredTask, TASK_COLUMNS};
use crate::sqlite::columns::Identifier;

impl Reading {
    pub(crate) fn row(&mut self, id: &TaskId) -> rusqlite::Result<Option<TaskRow>> {
        Ok(self.stored(id)?.map(|task| task.row))
    }

    pub(crate) fn load(&mut self, id: &TaskId) -> rusqlite::Result<Option<Loaded>> {
        match self.stored(id)? {
            Some(task) => self.loaded(task).map(Some),
            None => Ok(None),
        }
    }

    fn stored(&mut self, id: &TaskId) -> rusqlite::Result<Option<StoredTask>> {
        let sql = format!("SELECT {TASK_COLUMNS} FROM task WHERE id = ?1");
        self.task(&sql, [Identifier::new(id.as_str())])
    }
}
