//! What a consumer's page and a change of a registration write, within one transaction each.

use rusqlite::{OptionalExtension, params};
use switchboard_engine::store::StoreError;
use switchboard_engine::store::feed::Position;
use switchboard_engine::store::hub::{Advance, HealthSum, NewJob, PutRegistration};

use super::session::Session;
use crate::sqlite::columns::{health_by_number, health_step_number};

/// What became of a write that a guard may refuse; a refusal has written nothing.
type Guarded<T> = rusqlite::Result<Result<T, StoreError>>;

impl Session<'_> {
    /// Writes a page unless it was written before; says whether.
    pub(crate) fn advance(&mut self, advance: &Advance) -> Guarded<bool> {
        let taken = || Ok(Err(StoreError::ConsumerTaken(advance.consumer.clone())));
        let sql = "SELECT fence, epoch, major, row, seq FROM consumer WHERE name = ?1";
        let found = self
            .connection
            .prepare_cached(sql)?
            .query_row([&advance.consumer], |row| Ok((row.get::<_, i64>(0)?, crate::sqlite::hub::cursor(row, 1)?)));
        let Some((fence, read)) = found.optional()? else { return taken() };
        if fence != advance.fence.0.cast_signed() {
            return taken();
        }
        if let Some(cursor) = &advance.cursor
            && read.is_some_and(|read| (cursor.epoch, cursor.position) <= (read.epoch, read.position))
        {
            return Ok(Ok(false));
        }
        let cursor = advance.cursor.or(read);
        let Position { major, row, seq } = cursor.map(|cursor| cursor.position).unwrap_or_default();
        let sql = "UPDATE consumer SET epoch = ?2, major = ?3, row = ?4, seq = ?5, state = ?6 WHERE name = ?1";
        self.execute(
            sql,
            params![
                advance.consumer,
                cursor.map(|cursor| cursor.epoch.0.cast_signed()),
                cursor.map(|_| major.cast_signed()),
                cursor.map(|_| row),
                cursor.map(|_| seq.0.cast_signed()),
                &advance.state[..],
            ],
        )?;
        for sum in &advance.health {
            self.put_health(sum)?;
        }
        for job in &advance.jobs {
            self.owe_job(job)?;
        }
        self.insert_journal(&advance.journal)?;
        Ok(Ok(true))
    }

    fn put_health(&mut self, sum: &HealthSum) -> rusqlite::Result<()> {
        let agent = self.names.number(&mut self.statements, sum.agent.as_str())?;
        let sql = "INSERT OR REPLACE INTO health (step, at, agent, by, name, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (step, by) = (health_step_number(sum.step), health_by_number(sum.by));
        self.execute(sql, params![step, sum.at.0, agent, by, sum.name, &sum.sum[..]])?;
        Ok(())
    }

    /// Replaces or deletes a registration of the expected version; returns the version from now on.
    pub(crate) fn put_registration(&mut self, put: &PutRegistration) -> Guarded<u64> {
        let sql = "SELECT version, body IS NOT NULL FROM registration WHERE kind = ?1 AND name = ?2";
        let found = self.connection.prepare_cached(sql)?.query_row((&put.kind, &put.name), |row| {
            Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, bool>(1)?))
        });
        let (last, is_there) = found.optional()?.unwrap_or((0, false));
        let current = if is_there { last } else { 0 };
        if current != put.expected_version {
            return Ok(Err(StoreError::VersionConflict { current }));
        }
        let owner = self.names.number(&mut self.statements, put.owner.as_str())?;
        let version = last + 1;
        let sql = "INSERT OR REPLACE INTO registration (kind, name, version, owner, at, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let body = put.body.as_deref();
        self.execute(sql, params![put.kind, put.name, version.cast_signed(), owner, put.at.0, body])?;
        if let Some(job) = &put.job {
            self.replace_job(job)?;
        }
        self.insert_journal(&put.journal)?;
        Ok(Ok(version))
    }

    /// Adds a job unless its name is taken. One of that name that runs has perhaps looked before what the new one is about
    /// has happened: its claim holds no longer, so that it is run again.
    fn owe_job(&self, job: &NewJob) -> rusqlite::Result<()> {
        let sql = "INSERT INTO job (name, kind, run_at, attempts, body) VALUES (?1, ?2, ?3, 0, ?4) ON CONFLICT (name) \
                   DO UPDATE SET run_at = excluded.run_at, node = NULL WHERE job.node IS NOT NULL";
        self.execute(sql, params![job.name, job.kind, job.run_at.0, &job.body[..]])?;
        Ok(())
    }

    /// A claim of the job before holds no longer.
    fn replace_job(&self, job: &NewJob) -> rusqlite::Result<()> {
        let sql = "INSERT INTO job (name, kind, run_at, attempts, body) VALUES (?1, ?2, ?3, 0, ?4) ON CONFLICT (name) \
                   DO UPDATE SET kind = excluded.kind, run_at = excluded.run_at, body = excluded.body, node = NULL";
        self.execute(sql, params![job.name, job.kind, job.run_at.0, &job.body[..]])?;
        Ok(())
    }
}
