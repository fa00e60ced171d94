//! Group commit: many writes in one transaction. A write that is refused fails alone, a disk error fails all of them, and
//! no success is reported before the commit.

use std::time::Instant;

use switchboard_engine::store::Appended;

use super::append::AppendFailure;
use super::session::Session;
use crate::metric_definitions::{COMMIT_APPENDS, COMMIT_SECONDS};
use crate::sqlite::errors::{affects_one_write, store_error};
use crate::sqlite::replies::{WriteResult, send_replies};
use crate::sqlite::write_queue::{Queued, Write, WriteQueue};

type WriteResults = Vec<WriteResult>;

impl Session<'_> {
    /// Writes a batch and replies; returns the error if the whole batch failed.
    pub(crate) fn write(&mut self, writes: Vec<Queued>, queue: &WriteQueue) -> Option<rusqlite::Error> {
        let begun = Instant::now();
        let mut result = self.unannounced_transaction(|session| session.write_all(&writes));
        if result.as_ref().is_err_and(affects_one_write) {
            // Rare, so the batch is written again with savepoints rather than paying for them on every write.
            result = self.unannounced_transaction(|session| session.write_with_savepoints(&writes));
        }
        metrics::histogram!(COMMIT_SECONDS).record(begun.elapsed().as_secs_f64());
        metrics::histogram!(COMMIT_APPENDS).record(writes.len() as f64);
        queue.finished(result.as_ref().err().map(store_error));
        match result {
            Ok(outcomes) => {
                let replies = writes.into_iter().map(|queued| queued.reply).zip(outcomes);
                send_replies(replies, self.announcement());
                None
            }
            Err(error) => {
                send_replies(writes.into_iter().map(|queued| (queued.reply, Err(store_error(&error)))), None);
                Some(error)
            }
        }
    }

    fn write_one(&mut self, write: &Write) -> Result<Option<Appended>, AppendFailure> {
        match write {
            Write::Append(append, node) => self.append(append, node).map(Some),
            Write::Shared { work, .. } => {
                work(self)?;
                Ok(None)
            }
        }
    }

    fn write_all(&mut self, writes: &[Queued]) -> rusqlite::Result<WriteResults> {
        let mut outcomes = WriteResults::with_capacity(writes.len());
        for queued in writes {
            match self.write_one(&queued.write) {
                Ok(written) => outcomes.push(Ok(written)),
                Err(AppendFailure::Refused(error)) => outcomes.push(Err(error)),
                Err(AppendFailure::Database(error)) => return Err(error),
            }
        }
        Ok(outcomes)
    }

    fn write_with_savepoints(&mut self, writes: &[Queued]) -> rusqlite::Result<WriteResults> {
        let mut outcomes = WriteResults::with_capacity(writes.len());
        for queued in writes {
            self.statements.savepoint.execute([])?;
            match self.write_one(&queued.write) {
                Ok(written) => outcomes.push(Ok(written)),
                Err(AppendFailure::Refused(error)) => outcomes.push(Err(error)),
                Err(AppendFailure::Database(error)) if affects_one_write(&error) => {
                    tracing::error!(%error, "one write of many could not be made");
                    self.statements.undo.execute([])?;
                    self.names.forget();
                    outcomes.push(Err(store_error(&error)));
                }
                Err(AppendFailure::Database(error)) => return Err(error),
            }
            self.statements.release.execute([])?;
        }
        Ok(outcomes)
    }
}
