//! How many tasks of a group have a status at or after a time, exactly.
//!
//! The size of the group is known, so counting those before the time does as well, and the smaller part is counted. A time
//! that leaves out few tasks, or all but a few, is found by looking at a few on both sides of it. Else the times of the
//! oldest and the newest tell which part should be the smaller one; if they mislead, the count ends at half of the group.

use rusqlite::params;

use super::Group;
use crate::sqlite::readers::Reader;

/// A part with fewer tasks is counted at once, in less than a millisecond.
const FEW: i64 = 4096;

/// The tasks of a group on one side of a time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Before,
    Since,
}

impl Part {
    fn other(self) -> Self {
        match self {
            Self::Before => Self::Since,
            Self::Since => Self::Before,
        }
    }
}

impl Reader {
    pub(super) fn count_since(&self, owner: i64, group: &Group, since: i64) -> rusqlite::Result<i64> {
        let total = |part: Part, counted: i64| if part == Part::Since { counted } else { group.size - counted };
        for part in [Part::Since, Part::Before] {
            if let Some(counted) = self.count_below(owner, group, since, part, FEW)? {
                return Ok(total(part, counted));
            }
        }
        let smaller = self.smaller_part(owner, group, since)?;
        match self.count_below(owner, group, since, smaller, group.size / 2 + 2)? {
            Some(counted) => Ok(total(smaller, counted)),
            None => {
                let counted = self.count_below(owner, group, since, smaller.other(), i64::MAX)?;
                Ok(total(smaller.other(), counted.unwrap_or_default()))
            }
        }
    }

    /// The number of tasks in a part, if it is below a limit.
    fn count_below(
        &self,
        owner: i64,
        group: &Group,
        since: i64,
        part: Part,
        limit: i64,
    ) -> rusqlite::Result<Option<i64>> {
        let comparison = match part {
            Part::Before => "<",
            Part::Since => ">=",
        };
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM task INDEXED BY task_listing WHERE owner = ?1 AND agent = ?2 \
             AND state = ?3 AND hidden = 0 AND status_at {comparison} ?4 LIMIT ?5)"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let counted: i64 =
            statement.query_row(params![owner, group.agent, group.state, since, limit], |row| row.get(0))?;
        Ok(Some(counted).filter(|counted| *counted < limit))
    }

    /// Which part should be the smaller one, if the tasks came evenly.
    fn smaller_part(&self, owner: i64, group: &Group, since: i64) -> rusqlite::Result<Part> {
        let end = |order: &str| -> rusqlite::Result<i64> {
            let sql = format!(
                "SELECT status_at FROM task INDEXED BY task_listing WHERE owner = ?1 AND agent = ?2 AND state = ?3 \
                 AND hidden = 0 ORDER BY status_at {order} LIMIT 1"
            );
            let mut statement = self.connection.prepare_cached(&sql)?;
            statement.query_row((owner, group.agent, group.state), |row| row.get(0))
        };
        let (oldest, newest) = (end("ASC")?, end("DESC")?);
        let before = since.saturating_sub(oldest);
        Ok(if before < newest.saturating_sub(since) { Part::Before } else { Part::Since })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use rusqlite::Connection;

    use super::*;
    use crate::sqlite::migrate::migrate;
    use crate::sqlite::readers::names::Names;

    const TASKS: i64 = 60_000;
    const OWNER: i64 = 1;
    const GROUP: Group = Group { agent: 2, state: 3, size: TASKS };

    /// A group with a status at each of these times.
    fn group(times: &str) -> Reader {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let insert = format!(
            "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {TASKS}) \
             INSERT INTO task (key, id, owner, agent, context, state, status_at, phase, fence, hidden, recoveries, \
             last_seq, bytes, created_at) SELECT i + 1, i, {OWNER}, 2, 'c', 3, {times}, 4, 1, 0, 0, 1, 1, 0 FROM n"
        );
        connection.execute_batch(&insert).unwrap();
        Reader { connection, names: Names::default() }
    }

    /// The number since a time, and about how many instructions of SQLite it took.
    fn count(reader: &mut Reader, since: i64) -> (i64, i64) {
        let steps = Arc::new(AtomicI64::new(0));
        let counter = Arc::clone(&steps);
        let count_step = move || {
            counter.fetch_add(100, Ordering::Relaxed);
            false
        };
        reader.connection.progress_handler(100, Some(count_step)).unwrap();
        let counted = reader.count_since(OWNER, &GROUP, since).unwrap();
        (counted, steps.load(Ordering::Relaxed))
    }

    #[test]
    fn a_time_that_leaves_out_few_or_most_tasks_is_counted_by_few() {
        let mut reader = group("i");
        // Each task that is counted takes two instructions or more.
        let few = 20 * FEW;
        for (since, expected) in
            [(i64::MIN, TASKS), (0, TASKS), (100, TASKS - 100), (TASKS - 100, 100), (TASKS, 0), (i64::MAX, 0)]
        {
            let (counted, steps) = count(&mut reader, since);
            assert_eq!(counted, expected, "since {since}");
            assert!(steps < few, "{steps} steps since {since}");
        }
        // The smaller part, however large.
        let (counted, quarter) = count(&mut reader, TASKS / 4);
        assert_eq!(counted, TASKS - TASKS / 4);
        let (counted, same_part) = count(&mut reader, TASKS - TASKS / 4);
        assert_eq!(counted, TASKS / 4);
        assert!(quarter < 2 * same_part && same_part < 2 * quarter, "{quarter} and {same_part} steps");
    }

    #[test]
    fn times_that_mislead_give_the_same_number() {
        // All but the last few came at once, so the time between says nothing.
        let mut reader = group("CASE WHEN i < 50000 THEN i / 1000 ELSE 1000000 + i END");
        for since in [1, 10, 25, 40, 49, 50, 1_000, 1_050_000, 1_055_000, 1_059_999] {
            let expected: i64 = reader
                .connection
                .query_row("SELECT count(*) FROM task WHERE status_at >= ?1", [since], |row| row.get(0))
                .unwrap();
            assert_eq!(count(&mut reader, since).0, expected, "since {since}");
        }
    }
}
