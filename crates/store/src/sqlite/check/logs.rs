//! Every task's events: numbered without gaps, as many lines as the row says, each of them an event, ending where the task's
//! row says; and the snapshots beside them. One row is in memory at a time.

use rusqlite::{Connection, Row};
use switchboard_engine::event::Event;
use switchboard_engine::fold::Fold;

use super::IntegrityReport;
use crate::sqlite::columns::IdentifierText;
use crate::sqlite::event_lines::Fragments;

/// The most characters of a decoder's message, which may quote what it has read.
const REASON: usize = 200;

/// The sums over the events of one task.
struct Log {
    id: String,
    fragments: Fragments,
    found_seq: i64,
    found_bytes: i64,
}

pub(super) fn check(connection: &Connection, report: &mut IntegrityReport) -> rusqlite::Result<()> {
    let mut tasks = connection.prepare("SELECT id, key, first_row, last_seq, bytes, context FROM task ORDER BY key")?;
    let select = "SELECT first_seq, count, blob, id, snapshot FROM event";
    let mut first = connection.prepare(&format!("{select} WHERE id = ?1 AND task_key = ?2"))?;
    let mut later =
        connection.prepare(&format!("{select} WHERE task_key = ?1 AND first_seq > 1 ORDER BY first_seq"))?;
    let mut rows = tasks.query([])?;
    while let Some(row) = rows.next()? {
        report.tasks += 1;
        let (IdentifierText(id), IdentifierText(context)) = (row.get(0)?, row.get(5)?);
        let key: i64 = row.get(1)?;
        let first_row: Option<i64> = row.get(2)?;
        let fragments = Fragments::new(&id, &context);
        let mut log = Log { id, fragments, found_seq: 0, found_bytes: 0 };
        let mut events = first.query((first_row, key))?;
        while let Some(event) = events.next()? {
            log.event_row(event, report)?;
        }
        let mut events = later.query([key])?;
        while let Some(event) = events.next()? {
            log.event_row(event, report)?;
        }
        log.end(row.get(3)?, row.get(4)?, report);
    }
    Ok(())
}

impl Log {
    fn event_row(&mut self, row: &Row<'_>, report: &mut IntegrityReport) -> rusqlite::Result<()> {
        report.event_rows += 1;
        let (first_seq, count): (i64, i64) = (row.get(0)?, row.get(1)?);
        let events = self.fragments.splice_in(row.get(2)?);
        let (id, expected) = (&self.id, self.found_seq.saturating_add(1));
        if first_seq != expected {
            report.problems.push(format!("task {id}: event {expected} should follow, but {first_seq} does"));
        }
        let lines = if events.is_empty() { 0 } else { events.iter().filter(|byte| **byte == b'\n').count() + 1 };
        if i64::try_from(lines) != Ok(count) || count < 1 {
            report
                .problems
                .push(format!("task {id}: the row of event {first_seq} says {count} events and holds {lines}"));
        }
        self.contents(row.get(3)?, first_seq, &events, row.get_ref(4)?.as_blob_or_null()?, report);
        self.found_seq = first_seq.saturating_add(count).saturating_sub(1);
        self.found_bytes += i64::try_from(events.len()).unwrap_or(i64::MAX);
        Ok(())
    }

    /// Reads the events of a row, and its snapshot, as a server would. Of several that cannot be read, the first is named.
    fn contents(&self, row: i64, first_seq: i64, events: &[u8], snapshot: Option<&[u8]>, report: &mut IntegrityReport) {
        let id = &self.id;
        let mut unreadable = |what: &str, error: &dyn std::fmt::Display| {
            let reason: String = error.to_string().chars().take(REASON).collect();
            report.problems.push(format!("task {id}: {what} in event row {row} cannot be read: {reason}"));
        };
        for (line, seq) in events.split(|byte| *byte == b'\n').zip(first_seq..=i64::MAX) {
            if let Err(error) = Event::decode(line) {
                unreadable(&format!("event {seq}"), &error);
                break;
            }
        }
        if let Some(Err(error)) = snapshot.map(Fold::from_snapshot) {
            unreadable("the snapshot", &error);
        }
    }

    fn end(self, last_seq: i64, bytes: i64, report: &mut IntegrityReport) {
        let Self { id, found_seq, found_bytes, .. } = self;
        if last_seq != found_seq {
            report.problems.push(format!("task {id}: its row ends at event {last_seq}, its log at {found_seq}"));
        }
        if bytes != found_bytes {
            report
                .problems
                .push(format!("task {id}: its row counts {bytes} bytes of events, its log has {found_bytes}"));
        }
    }
}
