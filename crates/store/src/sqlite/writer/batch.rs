//! Many appends, one commit. An append that may not be written fails alone; an error of the disk fails all of them, and
//! nobody is told of a success before the commit.

use std::time::Instant;

use super::append::AppendFailure;
use super::session::Session;
use crate::metric_definitions::{COMMIT_APPENDS, COMMIT_SECONDS};
use crate::sqlite::answers::{Outcome, answer_all};
use crate::sqlite::failure::{is_of_one_append, plain};
use crate::sqlite::queue::{Queue, QueuedAppend};

type Outcomes = Vec<Outcome>;

impl Session<'_> {
    /// Writes and answers a batch; returns the error if none of it could be written.
    pub(crate) fn write(&mut self, appends: Vec<QueuedAppend>, queue: &Queue) -> Option<rusqlite::Error> {
        let begun = Instant::now();
        let mut result = self.transaction(|session| session.append_all(&appends));
        if result.as_ref().is_err_and(is_of_one_append) {
            // Savepoints cost on every append what this costs once in a blue moon: write all again, each one apart.
            result = self.transaction(|session| session.append_apart(&appends));
        }
        metrics::histogram!(COMMIT_SECONDS).record(begun.elapsed().as_secs_f64());
        metrics::histogram!(COMMIT_APPENDS).record(appends.len() as f64);
        queue.finished(result.as_ref().err().map(plain));
        match result {
            Ok(outcomes) => {
                answer_all(appends.into_iter().map(|queued| queued.reply).zip(outcomes));
                None
            }
            Err(error) => {
                answer_all(appends.into_iter().map(|queued| (queued.reply, Err(plain(&error)))));
                Some(error)
            }
        }
    }

    fn append_all(&mut self, appends: &[QueuedAppend]) -> rusqlite::Result<Outcomes> {
        let mut outcomes = Outcomes::with_capacity(appends.len());
        for queued in appends {
            match self.append(&queued.append) {
                Ok(appended) => outcomes.push(Ok(appended)),
                Err(AppendFailure::Refused(error)) => outcomes.push(Err(error)),
                Err(AppendFailure::Database(error)) => return Err(error),
            }
        }
        Ok(outcomes)
    }

    fn append_apart(&mut self, appends: &[QueuedAppend]) -> rusqlite::Result<Outcomes> {
        let mut outcomes = Outcomes::with_capacity(appends.len());
        for queued in appends {
            self.statements.savepoint.execute([])?;
            match self.append(&queued.append) {
                Ok(appended) => outcomes.push(Ok(appended)),
                Err(AppendFailure::Refused(error)) => outcomes.push(Err(error)),
                Err(AppendFailure::Database(error)) if is_of_one_append(&error) => {
                    tracing::error!(%error, "an append could not be written");
                    self.statements.undo.execute([])?;
                    self.names.forget();
                    outcomes.push(Err(plain(&error)));
                }
                Err(AppendFailure::Database(error)) => return Err(error),
            }
            self.statements.release.execute([])?;
        }
        Ok(outcomes)
    }
}
