//! Rows that contradict themselves or each other, and counters that do not count.

use rusqlite::Connection;

use super::{IntegrityReport, report_rows};
use crate::sqlite::columns::TERMINAL_STATES;

/// Conditions that must not hold for any task, and the problem if one does.
const TASK_VIOLATIONS: [(&str, &str); 7] = [
    ("phase <> 4 AND {terminal}", "it is in a terminal state but not done"),
    ("phase = 4 AND hidden = 0 AND NOT {terminal}", "it is done but not in a terminal state"),
    ("(phase = 1) <> (lease IS NOT NULL)", "it holds a lease although no turn runs, or a turn runs without one"),
    ("lease > (SELECT value FROM meta WHERE name = 'start')", "its lease is of a start that has not happened"),
    ("fence < 0 OR recoveries < 0", "its fence or recoveries are negative"),
    (
        "snapshot_row IS NOT NULL AND NOT EXISTS (SELECT 1 FROM event WHERE event.id = snapshot_row \
         AND task_key = task.key AND snapshot IS NOT NULL)",
        "its snapshot is missing",
    ),
    (
        "webhooks <> (SELECT count(*) FROM webhook WHERE task_key = task.key)",
        "its row counts other webhooks than there are",
    ),
];

/// Rows of other tables that belong to no task.
const ORPHANS: [(&str, &str); 4] = [
    (
        "SELECT id FROM event WHERE NOT EXISTS (SELECT 1 FROM task WHERE task.key = task_key \
         AND (first_seq > 1 OR first_row = event.id))",
        "event row",
    ),
    (
        "SELECT address || ' ' || key FROM send WHERE NOT EXISTS (SELECT 1 FROM task WHERE task.key = task_key)",
        "idempotency key",
    ),
    ("SELECT task_key FROM callback WHERE NOT EXISTS (SELECT 1 FROM task WHERE task.key = task_key)", "callback"),
    (
        "SELECT id FROM callback_update WHERE NOT EXISTS (SELECT 1 FROM callback \
         WHERE callback.task_key = callback_update.task_key)",
        "callback update",
    ),
];

pub(super) fn check(connection: &Connection, report: &mut IntegrityReport) -> rusqlite::Result<()> {
    for (condition, words) in TASK_VIOLATIONS {
        let condition = condition.replace("{terminal}", TERMINAL_STATES);
        let sql = format!("SELECT id FROM task WHERE {condition}");
        report_rows(connection, &sql, report, |id| format!("task {id}: {words}"))?;
    }
    for (sql, what) in ORPHANS {
        report_rows(connection, sql, report, |name| format!("{what} {name}: its task is gone"))?;
    }
    counters(connection, report)
}

fn counters(connection: &Connection, report: &mut IntegrityReport) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(
        "WITH real AS (SELECT owner, agent, state, hidden, phase = 3 AS parked, count(*) AS n FROM task \
         GROUP BY owner, agent, state, hidden, phase = 3) \
         SELECT owner, agent, state, hidden, parked, coalesce(tally.n, 0), coalesce(real.n, 0) \
         FROM tally FULL JOIN real USING (owner, agent, state, hidden, parked) \
         WHERE coalesce(tally.n, 0) <> coalesce(real.n, 0)",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let group: [i64; 5] = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?];
        let (counted, real): (i64, i64) = (row.get(5)?, row.get(6)?);
        let [owner, agent, state, hidden, parked] = group;
        report.problems.push(format!(
            "counter of owner {owner}, agent {agent}, state {state}, hidden {hidden}, parked {parked}: \
             says {counted} tasks, there are {real}"
        ));
    }
    Ok(())
}
