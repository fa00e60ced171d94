//! Webhooks and deliveries that contradict each other or their task.

use rusqlite::Connection;

use super::{IntegrityReport, report_rows};

/// Conditions that must not hold for any webhook, joined with its task, and the problem if one does.
const WEBHOOK_VIOLATIONS: [(&str, &str); 4] = [
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
];

/// The same of a delivery, joined with its webhook.
const DELIVERY_VIOLATIONS: [(&str, &str); 5] = [
    ("webhook.key IS NULL", "its webhook is gone"),
    (
        "delivery.state = 0 AND replay = 0 AND first_seq <= cursor",
        "it is next although its webhook was told of its events",
    ),
    (
        "delivery.state = 0 AND held <> (replay = 0 AND webhook.state <> 0)",
        "it is held although its webhook is active, or not held although it is not",
    ),
    ("delivery.state = 0 AND delivery.endpoint <> webhook.endpoint", "it goes to another endpoint than its webhook"),
    ("delivery.state = 2 AND attempted_at IS NULL", "it is dead and nobody knows since when"),
];

pub(super) fn check(connection: &Connection, report: &mut IntegrityReport) -> rusqlite::Result<()> {
    for (condition, words) in WEBHOOK_VIOLATIONS {
        let sql = format!("SELECT webhook.key FROM webhook LEFT JOIN task ON task.key = task_key WHERE {condition}");
        report_rows(connection, &sql, report, |key| format!("webhook {key}: {words}"))?;
    }
    for (condition, words) in DELIVERY_VIOLATIONS {
        let sql = format!(
            "SELECT delivery.key FROM delivery LEFT JOIN webhook ON webhook.key = delivery.webhook WHERE {condition}"
        );
        report_rows(connection, &sql, report, |key| format!("delivery {key}: {words}"))?;
    }
    Ok(())
}
