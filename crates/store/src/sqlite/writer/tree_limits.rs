//! How many tasks a task and its tree may have, counted when one more is created. Rows are counted, not a number beside
//! them: a task that is created once is counted once, whatever was tried before.

use switchboard_engine::store::StoreError;
use switchboard_engine::store::lineage::{Ancestors, TreeLimits};

use super::append::AppendFailure;
use super::session::Session;
use crate::sqlite::query::limit;

const CHILDREN: &str = "SELECT count(*) FROM (SELECT 1 FROM task INDEXED BY task_parent \
                        WHERE parent IS NOT NULL AND parent = ?1 LIMIT ?2)";
const TREE: &str =
    "SELECT count(*) FROM (SELECT 1 FROM task INDEXED BY task_root WHERE root IS NOT NULL AND root = ?1 LIMIT ?2)";

impl Session<'_> {
    /// Refuses a child beyond the limits.
    pub(crate) fn check_tree(
        &self,
        ancestors: Option<Ancestors>,
        limits: Option<TreeLimits>,
    ) -> Result<(), AppendFailure> {
        let (Some(Ancestors { parent, root }), Some(limits)) = (ancestors, limits) else { return Ok(()) };
        let below = limits.max_tree.saturating_sub(1);
        let full = |counted, max, setting| Err(AppendFailure::Refused(StoreError::TreeFull { counted, max, setting }));
        if self.counts(CHILDREN, parent.0, limits.max_children)? {
            return full("a task starts", limits.max_children, "delegation.maxChildren");
        }
        if self.counts(TREE, root.0, below)? {
            return full("a tree of tasks has", limits.max_tree, "delegation.maxTree");
        }
        Ok(())
    }

    /// Whether there are so many rows; no more than these are looked at.
    fn counts(&self, sql: &str, key: i64, many: usize) -> rusqlite::Result<bool> {
        let count: i64 = self.connection.prepare_cached(sql)?.query_row((key, limit(many)), |row| row.get(0))?;
        Ok(count >= limit(many))
    }
}
