//! Rows that contradict themselves or each other, and counters that do not count.

use rusqlite::Connection;

use super::{IntegrityReport, report_rows};
use crate::sqlite::columns::TERMINAL_STATES;

/// A table with what it is joined to, the name of its rows, and conditions that must not hold for any of them, each with
/// the problem if one does.
type Violations = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const VIOLATIONS: [Violations; 8] = [
    (
        "SELECT id FROM task",
        "task",
        &[
            ("phase <> 4 AND {terminal}", "it is in a terminal state but not done"),
            ("phase = 4 AND hidden = 0 AND NOT {terminal}", "it is done but not in a terminal state"),
            (
                "(phase = 1) <> (lease IS NOT NULL)",
                "it holds a lease although no turn runs, or a turn runs without one",
            ),
            ("lease > (SELECT value FROM meta WHERE name = 'start')", "its lease is of a start that has not happened"),
            ("fence < 0 OR recoveries < 0", "its fence or recoveries are negative"),
            ("(parent IS NULL) <> (root IS NULL)", "it has a parent without a root, or a root without a parent"),
            (
                "snapshot_row IS NOT NULL AND NOT EXISTS (SELECT 1 FROM event WHERE event.id = snapshot_row \
                 AND task_key = task.key AND snapshot IS NOT NULL)",
                "its snapshot is missing",
            ),
            (
                "webhooks <> (SELECT count(*) FROM webhook WHERE task_key = task.key)",
                "its row counts other webhooks than there are",
            ),
        ],
    ),
    (
        "SELECT id FROM event",
        "event row",
        &[(
            "NOT EXISTS (SELECT 1 FROM task WHERE task.key = task_key AND (first_seq > 1 OR first_row = event.id))",
            "its task is gone",
        )],
    ),
    (
        "SELECT id FROM journal",
        "journal line",
        &[("EXISTS (SELECT 1 FROM event WHERE event.id = journal.id)", "an event row has its id")],
    ),
    ("SELECT address || ' ' || key FROM send", "idempotency key", &[(NO_TASK, "its task is gone")]),
    ("SELECT task_key FROM callback", "callback", &[(NO_TASK, "its task is gone")]),
    (
        "SELECT id FROM callback_update",
        "callback update",
        &[(
            "NOT EXISTS (SELECT 1 FROM callback WHERE callback.task_key = callback_update.task_key)",
            "its task is gone",
        )],
    ),
    (
        "SELECT webhook.key FROM webhook LEFT JOIN task ON task.key = task_key",
        "webhook",
        &[
            ("webhook.cursor > task.last_seq", "it was told of events that its task does not have"),
            (
                "task.key IS NULL AND NOT EXISTS (SELECT 1 FROM delivery WHERE webhook = webhook.key AND delivery.state <> 1)",
                "its task is gone and it has no dead letters",
            ),
            ("task.key IS NULL AND webhook.state < 2", "its task is gone and it waits for more"),
            (
                "(SELECT count(*) FROM delivery WHERE webhook = webhook.key AND delivery.state = 0 AND replay = 0) > 1",
                "more than one delivery is next in its order",
            ),
        ],
    ),
    (
        "SELECT delivery.key FROM delivery LEFT JOIN webhook ON webhook.key = delivery.webhook",
        "delivery",
        &[
            ("webhook.key IS NULL", "its webhook is gone"),
            (
                "delivery.state = 0 AND replay = 0 AND first_seq <= cursor",
                "it is next although its webhook was told of its events",
            ),
            (
                "delivery.state = 0 AND held <> (replay = 0 AND webhook.state <> 0)",
                "it is held although its webhook is active, or not held although it is not",
            ),
            (
                "delivery.state = 0 AND delivery.endpoint <> webhook.endpoint",
                "it goes to another endpoint than its webhook",
            ),
            ("delivery.state = 2 AND attempted_at IS NULL", "it is dead without the time of its last attempt"),
        ],
    ),
];

const NO_TASK: &str = "NOT EXISTS (SELECT 1 FROM task WHERE task.key = task_key)";

pub(super) fn check(connection: &Connection, report: &mut IntegrityReport) -> rusqlite::Result<()> {
    for (select, noun, conditions) in VIOLATIONS {
        for (condition, words) in conditions {
            let sql = format!("{select} WHERE {}", condition.replace("{terminal}", TERMINAL_STATES));
            report_rows(connection, &sql, report, |name| format!("{noun} {name}: {words}"))?;
        }
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
