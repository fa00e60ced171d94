//! The newest tasks of one context, and the newest note in it.

use rusqlite::params;
use switchboard_a2a::ContextId;
use switchboard_engine::ids::{AgentName, CallerId};
use switchboard_engine::store::TaskRow;

use super::Reader;
use super::load::TASK_COLUMNS;
use crate::sqlite::columns::Identifier;
use crate::sqlite::query::{limit, optional_row};

impl Reader {
    pub(crate) fn context(
        &mut self,
        owner: &CallerId,
        agent: &AgentName,
        context: &ContextId,
        max: usize,
    ) -> rusqlite::Result<Vec<TaskRow>> {
        let Some((owner, agent)) = self.numbers(owner, agent)? else { return Ok(Vec::new()) };
        let sql = format!(
            "SELECT {TASK_COLUMNS} FROM task INDEXED BY task_context WHERE context = ?1 AND owner = ?2 AND hidden = 0 \
             AND agent = ?3 ORDER BY status_at DESC, key DESC LIMIT ?4"
        );
        self.task_rows(&sql, params![Identifier::new(context.as_str()), owner, agent, limit(max)])
    }

    /// The note of the newest task that has one.
    pub(crate) fn noted(
        &mut self,
        owner: &CallerId,
        agent: &AgentName,
        context: &ContextId,
    ) -> rusqlite::Result<Option<String>> {
        let Some((owner, agent)) = self.numbers(owner, agent)? else { return Ok(None) };
        let sql = "SELECT note FROM task INDEXED BY task_context WHERE context = ?1 AND owner = ?2 AND hidden = 0 \
                   AND agent = ?3 AND note IS NOT NULL ORDER BY status_at DESC, key DESC LIMIT 1";
        let context = Identifier::new(context.as_str());
        optional_row(&self.connection, sql, params![context, owner, agent], |row| row.get(0))
    }

    /// Absent if the owner or the agent has never had a task.
    fn numbers(&mut self, owner: &CallerId, agent: &AgentName) -> rusqlite::Result<Option<(i64, i64)>> {
        let owner = self.names.number(&self.connection, owner.as_str())?;
        let agent = self.names.number(&self.connection, agent.as_str())?;
        Ok(owner.zip(agent))
    }
}
