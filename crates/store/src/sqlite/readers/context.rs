//! The newest tasks of one conversation, and what was noted in it.

use rusqlite::{OptionalExtension, params};
use switchboard_a2a::ContextId;
use switchboard_engine::ids::{AgentName, CallerId};
use switchboard_engine::store::TaskRow;

use super::Reader;
use super::row::TASK_COLUMNS;
use super::unfinished::limit;
use crate::sqlite::columns::Identifier;

impl Reader {
    pub(crate) fn context(
        &mut self,
        owner: &CallerId,
        agent: &AgentName,
        context: &ContextId,
        max: usize,
    ) -> rusqlite::Result<Vec<TaskRow>> {
        let owner = self.names.number(&self.connection, owner.as_str())?;
        let agent = self.names.number(&self.connection, agent.as_str())?;
        let (Some(owner), Some(agent)) = (owner, agent) else {
            return Ok(Vec::new());
        };
        let sql = format!(
            "SELECT {TASK_COLUMNS} FROM task INDEXED BY task_context WHERE context = ?1 AND owner = ?2 AND hidden = 0 \
             AND agent = ?3 ORDER BY status_at DESC, key DESC LIMIT ?4"
        );
        self.task_rows(&sql, params![Identifier::new(context.as_str()), owner, agent, limit(max)])
    }

    /// Walks the conversation from its newest task to the first that has noted something.
    pub(crate) fn noted(
        &mut self,
        owner: &CallerId,
        agent: &AgentName,
        context: &ContextId,
    ) -> rusqlite::Result<Option<String>> {
        let owner = self.names.number(&self.connection, owner.as_str())?;
        let agent = self.names.number(&self.connection, agent.as_str())?;
        let (Some(owner), Some(agent)) = (owner, agent) else {
            return Ok(None);
        };
        let mut statement = self.connection.prepare_cached(
            "SELECT note FROM task INDEXED BY task_context WHERE context = ?1 AND owner = ?2 AND hidden = 0 \
             AND agent = ?3 AND note IS NOT NULL ORDER BY status_at DESC, key DESC LIMIT 1",
        )?;
        let place = params![Identifier::new(context.as_str()), owner, agent];
        statement.query_row(place, |row| row.get(0)).optional()
    }
}
