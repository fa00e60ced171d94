//! One task by its public id, or some by their keys.

use switchboard_a2a::TaskId;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::{LoadedTask, LoadedTaskWithin, TaskRow};

use super::Reader;
use super::row::{StoredTask, TASK_COLUMNS};
use crate::sqlite::columns::Identifier;

impl Reader {
    pub(crate) fn row(&mut self, id: &TaskId) -> rusqlite::Result<Option<TaskRow>> {
        Ok(self.stored(id)?.map(|task| task.row))
    }

    pub(crate) fn load(&mut self, id: &TaskId) -> rusqlite::Result<Option<LoadedTask>> {
        match self.stored(id)? {
            Some(task) => self.loaded(task).map(Some),
            None => Ok(None),
        }
    }

    /// The same, unless it is larger: then nothing but its row is read.
    pub(crate) fn load_within(&mut self, id: &TaskId, max_bytes: u64) -> rusqlite::Result<Option<LoadedTaskWithin>> {
        match self.stored(id)? {
            Some(task) if task.row.bytes > max_bytes => Ok(Some(LoadedTaskWithin::Larger(Box::new(task.row)))),
            Some(task) => self.loaded(task).map(|loaded| Some(LoadedTaskWithin::Whole(Box::new(loaded)))),
            None => Ok(None),
        }
    }

    /// Those that are still there, until `max_bytes` are passed.
    pub(crate) fn load_some(&mut self, keys: &[TaskKey], max_bytes: usize) -> rusqlite::Result<Vec<LoadedTask>> {
        let sql = format!("SELECT {TASK_COLUMNS} FROM task WHERE key = ?1");
        let mut found = Vec::new();
        let mut bytes = 0;
        for key in keys {
            let Some(task) = self.task(&sql, [key.0])? else { continue };
            let loaded = self.loaded(task)?;
            bytes += loaded.size();
            found.push(loaded);
            if bytes > max_bytes {
                break;
            }
        }
        Ok(found)
    }

    fn stored(&mut self, id: &TaskId) -> rusqlite::Result<Option<StoredTask>> {
        let sql = format!("SELECT {TASK_COLUMNS} FROM task WHERE id = ?1");
        self.task(&sql, [Identifier::new(id.as_str())])
    }
}
