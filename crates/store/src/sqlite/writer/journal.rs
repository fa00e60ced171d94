//! Journal lines, which have row ids of one sequence with the events, and the greatest row id that was deleted.

use rusqlite::params;
use switchboard_engine::ids::{Epoch, Seq};
use switchboard_engine::store::feed::{FeedCursor, JournalLine, JournalRetention, Position};

use super::session::Session;
use crate::sqlite::columns::Identifier;
use crate::sqlite::open::set_meta;
use crate::sqlite::query::{limit, rows};
use crate::sqlite::readers::feed::evicted_to;

/// Parameters: whether of the audit, the time, the limit.
pub(crate) const AGED: &str = "DELETE FROM journal WHERE id IN (SELECT id FROM journal INDEXED BY journal_age \
     WHERE (topic GLOB 'audit.*') = ?1 AND at < ?2 ORDER BY at LIMIT ?3) RETURNING id, epoch";

impl Session<'_> {
    /// Writes lines into the open transaction.
    pub(crate) fn insert_journal(&mut self, lines: &[JournalLine]) -> rusqlite::Result<Vec<FeedCursor>> {
        let mut places = Vec::with_capacity(lines.len());
        for line in lines {
            let owner = match &line.owner {
                Some(owner) => Some(self.names.number(&mut self.statements, owner.as_str())?),
                None => None,
            };
            let task = line.task.as_ref().map(|task| Identifier::new(task.as_str()));
            let sql =
                "INSERT INTO journal (id, epoch, at, owner, task, topic, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let epoch = self.start.epoch.0.cast_signed();
            let values = params![self.next_event, epoch, line.at.0, owner, task, line.topic, &line.payload[..]];
            self.execute(sql, values)?;
            let position = Position { major: 0, row: self.next_event, seq: Seq(0) };
            places.push(FeedCursor { epoch: self.start.epoch, position });
            self.next_event += 1;
        }
        Ok(places)
    }

    /// Deletes lines that are older than they are kept, in one transaction; returns how many.
    pub(crate) fn evict_journal(&mut self, retention: JournalRetention, max: usize) -> rusqlite::Result<usize> {
        self.transaction(|session| {
            session.save_highest_keys()?;
            let mut deleted = Vec::new();
            for (is_audit, before) in [(false, retention.before), (true, retention.audit_before)] {
                let left = limit(max - deleted.len().min(max));
                let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, Epoch(row.get::<_, i64>(1)?.cast_unsigned())));
                deleted.extend(rows(session.connection, AGED, (is_audit, before.0, left), row)?);
            }
            session.save_evicted(deleted.iter().copied().max_by_key(|(row, _)| *row))?;
            Ok(deleted.len())
        })
    }

    /// Remembers the greatest row that was deleted, in the transaction that deletes it.
    pub(crate) fn save_evicted(&self, greatest: Option<(i64, Epoch)>) -> rusqlite::Result<()> {
        if let Some((row, epoch)) = greatest
            && row > evicted_to(self.connection)?.position.row
        {
            set_meta(self.connection, "evicted_to", row)?;
            set_meta(self.connection, "evicted_epoch", epoch.0.cast_signed())?;
        }
        Ok(())
    }
}
