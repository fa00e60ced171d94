//! Selects the ended tasks to evict: those that ended too long ago, and the oldest beyond the retention limits.
//!
//! It needs no index of its own: the listing index holds each (owner, agent, state) group by time, and the oldest of all
//! are the merge of the groups' oldest.

use rusqlite::Row;
use switchboard_engine::store::Retention;
use switchboard_engine::store::webhooks::WebhookKey;

use super::Reader;
use crate::sqlite::columns::TERMINAL_STATES;
use crate::sqlite::query::{Merged, number, optional_row, rows};

/// What a task takes in the file besides its events and snapshot, roughly.
const ROW_BYTES: u64 = 512;

/// An open webhook, active or paused, still has to read its task.
const NO_OPEN_WEBHOOK: &str =
    "(webhooks = 0 OR NOT EXISTS (SELECT 1 FROM webhook WHERE webhook.task_key = task.key AND webhook.state < 2))";

/// Whether a consumer has not read the last row of a task that may be held for it. Parameters: the row that all consumers
/// have read, since when tasks are held.
const UNREAD: &str = "(status_at >= ?2 AND coalesce((SELECT id FROM event WHERE event.task_key = task.key AND first_seq > 1 \
     ORDER BY first_seq DESC LIMIT 1), first_row) > ?1)";

/// Ordered by age.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    ended_at: i64,
    key: i64,
    bytes: u64,
    hold: Hold,
}

/// What keeps a task from eviction. The column `held` has their numbers.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Hold {
    /// 0
    Free,
    /// 1
    Webhook,
    /// 2; no open webhook does.
    Consumer,
}

fn candidate(row: &Row<'_>) -> rusqlite::Result<Candidate> {
    let bytes = row.get::<_, i64>(2)?.cast_unsigned();
    let hold = match row.get(3)? {
        0 => Hold::Free,
        1 => Hold::Webhook,
        _ => Hold::Consumer,
    };
    Ok(Candidate { ended_at: row.get(0)?, key: row.get(1)?, bytes, hold })
}

/// What exceeds the retention limits.
struct Excess {
    tasks: u64,
    bytes: u64,
}

impl Excess {
    fn is_none(&self) -> bool {
        self.tasks == 0 && self.bytes == 0
    }

    /// Counts a candidate as evicted. The snapshot of an ended task is at most about as large as its events. The estimate
    /// is rather too high: the next call sees what was really freed, and a deleted task does not come back.
    fn subtract(&mut self, candidate: &Candidate) {
        self.tasks = self.tasks.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(2 * candidate.bytes + ROW_BYTES);
    }
}

/// Tasks to evict, oldest first.
#[derive(Default)]
struct EvictionPlan {
    free: Vec<i64>,
    /// By open webhooks or consumers, and over the limits although the free ones go.
    held: Vec<i64>,
}

/// The tasks of one caller with one agent that ended in one state.
struct EndedGroup {
    owner: i64,
    agent: i64,
    state: i64,
}

impl Reader {
    /// Keys of at most `max` tasks to delete, oldest first.
    pub(crate) fn evictable(&mut self, retention: Retention, max: usize) -> rusqlite::Result<Vec<i64>> {
        Ok(self.eviction_plan(retention, max)?.free)
    }

    /// The open webhooks of the tasks that only they keep from eviction over the limits.
    pub(crate) fn held_beyond_caps(&mut self, retention: Retention, max: usize) -> rusqlite::Result<Vec<WebhookKey>> {
        let mut webhooks = Vec::new();
        for task in self.eviction_plan(retention, max)?.held {
            let sql = "SELECT key FROM webhook WHERE task_key = ?1 AND state < 2";
            webhooks.extend(rows(&self.connection, sql, [task], |row| row.get(0).map(WebhookKey))?);
        }
        Ok(webhooks)
    }

    /// How many of the `max` oldest tasks are aged or over the limits, and only consumers keep them.
    pub(crate) fn held_by_consumers(&mut self, retention: Retention, max: usize) -> rusqlite::Result<usize> {
        let (read, hold_since) = self.read_by_consumers(retention)?;
        if hold_since == i64::MAX {
            return Ok(0);
        }
        let mut excess = self.excess(retention)?;
        let aged = retention.ended_before.0;
        let before = if excess.is_none() { aged } else { i64::MAX };
        let mut held = 0;
        for candidate in self.oldest(before, max, true, (read, hold_since))? {
            if excess.is_none() && candidate.ended_at >= aged {
                break;
            }
            held += usize::from(candidate.hold == Hold::Consumer);
            excess.subtract(&candidate);
        }
        Ok(held)
    }

    /// At most `max` tasks of each kind. First the expired ones that are free; if the rest is still over the limits, the
    /// oldest of all others. Held ones count among these, because they must not stay at the cost of younger tasks.
    fn eviction_plan(&mut self, retention: Retention, max: usize) -> rusqlite::Result<EvictionPlan> {
        let mut excess = self.excess(retention)?;
        let mut plan = EvictionPlan::default();
        let aged = retention.ended_before.0;
        let read = self.read_by_consumers(retention)?;
        for candidate in self.oldest(aged, max, false, read)? {
            excess.subtract(&candidate);
            plan.free.push(candidate.key);
        }
        if excess.is_none() || plan.free.len() >= max {
            return Ok(plan);
        }
        for candidate in self.oldest(i64::MAX, max, true, read)? {
            if excess.is_none() {
                break;
            }
            if candidate.hold != Hold::Free {
                plan.held.push(candidate.key);
            } else if candidate.ended_at < aged {
                // Counted above.
                continue;
            } else if plan.free.len() < max {
                plan.free.push(candidate.key);
            }
            excess.subtract(&candidate);
        }
        Ok(plan)
    }

    fn excess(&self, retention: Retention) -> rusqlite::Result<Excess> {
        let number = |sql| number(&self.connection, sql);
        let tasks = number("SELECT coalesce(sum(n), 0) FROM tally")?;
        let pages = number("PRAGMA page_count")?;
        let free = number("PRAGMA freelist_count")?;
        let page_size = number("PRAGMA page_size")?;
        // Dead letters have their own limits; tasks must not make room for them.
        let letters =
            number("SELECT coalesce(sum(length(body)), 0) FROM delivery INDEXED BY delivery_dead WHERE state = 2")?;
        let bytes = (pages.saturating_sub(free) * page_size).saturating_sub(letters);
        Ok(Excess {
            tasks: tasks.saturating_sub(retention.max_tasks),
            bytes: bytes.saturating_sub(retention.max_bytes),
        })
    }

    /// The row that all consumers have read, and since when what they have not read is held.
    fn read_by_consumers(&self, retention: Retention) -> rusqlite::Result<(i64, i64)> {
        let sql = "SELECT min(row) FROM consumer WHERE row IS NOT NULL";
        let read: Option<i64> = optional_row(&self.connection, sql, [], |row| row.get(0))?.flatten();
        // Without a consumer nothing is held, which is known without looking for last rows.
        Ok(read.map_or((i64::MAX, i64::MAX), |row| (row, retention.hold_since.0)))
    }

    fn oldest(
        &self,
        before: i64,
        max: usize,
        with_held: bool,
        (read, hold_since): (i64, i64),
    ) -> rusqlite::Result<Vec<Candidate>> {
        let mut oldest = Merged::new(max);
        let only = if with_held { "" } else { "AND held = 0" };
        let held = format!("CASE WHEN NOT {NO_OPEN_WEBHOOK} THEN 1 WHEN {UNREAD} THEN 2 ELSE 0 END");
        let columns = format!("status_at, key, bytes, {held} AS held");
        let group = format!(
            "SELECT {columns} FROM task INDEXED BY task_listing \
             WHERE owner = ?4 AND agent = ?5 AND state = ?6 AND hidden = 0 AND status_at < ?3 AND phase = 4 {only} \
             ORDER BY status_at, key"
        );
        for EndedGroup { owner, agent, state } in self.ended_groups()? {
            let params = (read, hold_since, before, owner, agent, state);
            oldest.merge(&self.connection, &group, params, candidate)?;
        }
        let hidden = format!(
            "SELECT {columns} FROM task INDEXED BY task_hidden \
             WHERE hidden = 1 AND status_at < ?3 AND phase = 4 {only} ORDER BY status_at, key"
        );
        oldest.merge(&self.connection, &hidden, (read, hold_since, before), candidate)?;
        Ok(oldest.first)
    }

    fn ended_groups(&self) -> rusqlite::Result<Vec<EndedGroup>> {
        let sql = format!(
            "SELECT owner, agent, state FROM tally WHERE hidden = 0 AND parked = 0 AND {TERMINAL_STATES} AND n > 0"
        );
        rows(&self.connection, &sql, [], |row| {
            Ok(EndedGroup { owner: row.get(0)?, agent: row.get(1)?, state: row.get(2)? })
        })
    }
}
