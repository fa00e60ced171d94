//! Consumers, jobs, registrations and health sums in SQLite. Each write is a transaction of its own, between two group
//! commits.

use bytes::Bytes;
use rusqlite::{Row, params};
use switchboard_a2a::{TaskState, Timestamp};
use switchboard_engine::ids::{AgentName, CallerId, Epoch, Fence, Seq, TaskKey};
use switchboard_engine::store::feed::{FeedCursor, JournalLine, Position};
use switchboard_engine::store::hub::{
    Advance, CONSUMER_STATE_BYTES, ClaimedJob, ConsumerRow, HealthSeries, HealthStep, HealthSum, HubStore, JobEnd,
    NewJob, PutRegistration, RegistrationRow,
};
use switchboard_engine::store::{StoreError, StoreFuture};

use super::SqliteStore;
use super::columns::{health_by_from, health_by_number, health_step_number, state_from, state_number};
use super::query::{limit, optional_row, rows};
use super::readers::Reader;

/// Parameters: the node, the time, the limit; the live nodes are a list.
fn claim(live_nodes: &str) -> String {
    format!(
        "UPDATE job SET node = ?1, attempts = attempts + 1 WHERE id IN (SELECT id FROM job INDEXED BY job_due \
         WHERE run_at <= ?2 AND (node IS NULL OR node NOT IN ({live_nodes})) ORDER BY run_at, id LIMIT ?3) \
         RETURNING run_at, name, kind, body, attempts"
    )
}

impl HubStore for SqliteStore {
    fn take_consumer(&self, name: &str) -> StoreFuture<ConsumerRow> {
        let name = name.to_owned();
        self.queue.write_exclusive(move |session| {
            session.transaction(|session| {
                let sql = "INSERT INTO consumer (name, fence, state) VALUES (?1, 1, x'') \
                           ON CONFLICT (name) DO UPDATE SET fence = fence + 1 \
                           RETURNING fence, epoch, major, row, seq, state";
                session.connection.prepare_cached(sql)?.query_row([name], consumer)
            })
        })
    }

    fn advance(&self, advance: Advance) -> StoreFuture<bool> {
        let checked = self.check_lines(&advance.journal).and_then(|()| check_state(&advance));
        if let Err(refusal) = checked {
            return refused(refusal);
        }
        let written =
            self.queue.write_exclusive(move |session| session.transaction(|session| session.advance(&advance)));
        Box::pin(async move { written.await? })
    }

    fn remove_consumer(&self, name: &str) -> StoreFuture<bool> {
        let name = name.to_owned();
        self.queue.write_exclusive(move |session| {
            session.transaction(|session| Ok(session.execute("DELETE FROM consumer WHERE name = ?1", [name])? > 0))
        })
    }

    fn journal(&self, lines: Vec<JournalLine>) -> StoreFuture<Vec<FeedCursor>> {
        if let Err(refusal) = self.check_lines(&lines) {
            return refused(refusal);
        }
        let bytes = lines.iter().map(|line| line.payload.len() + line.topic.len()).sum();
        self.queue.write_shared(bytes, move |session| session.insert_journal(&lines))
    }

    fn put_registration(&self, put: PutRegistration) -> StoreFuture<u64> {
        if let Err(refusal) = self.check_lines(&put.journal) {
            return refused(refusal);
        }
        let written =
            self.queue.write_exclusive(move |session| session.transaction(|session| session.put_registration(&put)));
        Box::pin(async move { written.await? })
    }

    fn registrations(&self, kind: &str, after: &str, max: usize) -> StoreFuture<Vec<RegistrationRow>> {
        let (kind, after) = (kind.to_owned(), after.to_owned());
        self.read(move |Reader { connection, names }| {
            let sql = "SELECT name, version, owner, at, body FROM registration \
                       WHERE kind = ?1 AND name > ?2 AND body IS NOT NULL ORDER BY name LIMIT ?3";
            rows(connection, sql, params![kind, after, limit(max)], |row| {
                Ok(RegistrationRow {
                    kind: kind.clone(),
                    name: row.get(0)?,
                    version: row.get::<_, i64>(1)?.cast_unsigned(),
                    owner: names.text(connection, row.get(2)?)?.into(),
                    at: Timestamp(row.get(3)?),
                    body: Bytes::from(row.get::<_, Vec<u8>>(4)?),
                })
            })
        })
    }

    fn claim_jobs(&self, now: Timestamp, max: usize) -> StoreFuture<Vec<ClaimedJob>> {
        let node = self.node.clone();
        self.queue.write_exclusive(move |session| {
            if !node.is_live() {
                return Ok(Vec::new());
            }
            session.transaction(|session| {
                let sql = claim(&node.live_numbers());
                let mut jobs = rows(session.connection, &sql, (node.number(), now.0, limit(max)), claimed_job)?;
                // An UPDATE returns its rows in no particular order.
                jobs.sort_by(|left, right| (left.job.run_at, &left.job.name).cmp(&(right.job.run_at, &right.job.name)));
                Ok(jobs)
            })
        })
    }

    fn finish_job(&self, name: &str, attempts: u32, end: JobEnd) -> StoreFuture<bool> {
        let (name, node) = (name.to_owned(), self.node.number());
        if let JobEnd::Told { journal, .. } = &end
            && let Err(refusal) = self.check_lines(journal)
        {
            return refused(refusal);
        }
        self.queue.write_exclusive(move |session| {
            session.transaction(|session| {
                let again = "UPDATE job SET node = NULL, run_at = ?4, body = coalesce(?5, body) \
                             WHERE name = ?1 AND node = ?2 AND attempts = ?3";
                let finished = match &end {
                    JobEnd::Done => {
                        let sql = "DELETE FROM job WHERE name = ?1 AND node = ?2 AND attempts = ?3";
                        session.execute(sql, (&name, node, attempts))?
                    }
                    JobEnd::Again { run_at, body } => {
                        session.execute(again, (&name, node, attempts, run_at.0, body.as_deref()))?
                    }
                    JobEnd::Told { run_at, body, journal } => {
                        let held = session.execute(again, (&name, node, attempts, run_at.0, &body[..]))?;
                        if held > 0 {
                            session.insert_journal(journal)?;
                        }
                        held
                    }
                };
                Ok(finished > 0)
            })
        })
    }

    fn health(&self, step: HealthStep, since: Timestamp) -> StoreFuture<Vec<HealthSum>> {
        self.read(move |Reader { connection, names }| {
            let sql =
                "SELECT at, agent, by, name, sum FROM health WHERE step = ?1 AND at >= ?2 ORDER BY at, agent, by, name";
            rows(connection, sql, (health_step_number(step), since.0), |row| {
                Ok(HealthSum {
                    step,
                    at: Timestamp(row.get(0)?),
                    agent: names.text(connection, row.get(1)?)?.into(),
                    by: health_by_from(2, row.get(2)?)?,
                    name: row.get(3)?,
                    sum: Bytes::from(row.get::<_, Vec<u8>>(4)?),
                })
            })
        })
    }

    fn health_series(
        &self,
        series: HealthSeries,
        since: Timestamp,
        max: usize,
    ) -> StoreFuture<Vec<(Timestamp, Bytes)>> {
        self.read(move |Reader { connection, names }| {
            let HealthSeries { step, agent, by, name } = series;
            let Some(agent) = names.number(connection, agent.as_str())? else { return Ok(Vec::new()) };
            let sql = "SELECT at, sum FROM health WHERE step = ?1 AND at >= ?2 AND agent = ?3 AND by = ?4 AND name = ?5 \
                       ORDER BY at LIMIT ?6";
            let wanted = (health_step_number(step), since.0, agent, health_by_number(by), name, limit(max));
            rows(connection, sql, wanted, |row| {
                Ok((Timestamp(row.get(0)?), Bytes::from(row.get::<_, Vec<u8>>(1)?)))
            })
        })
    }

    fn ended_with_live_children(&self, keys: Vec<TaskKey>) -> StoreFuture<Vec<TaskKey>> {
        self.read(move |Reader { connection, .. }| {
            let sql = "SELECT key FROM task AS parent WHERE key = ?1 AND phase = 4 AND EXISTS \
                       (SELECT 1 FROM task AS child INDEXED BY task_parent \
                       WHERE child.parent = ?1 AND child.phase < 4)";
            let mut found = Vec::new();
            for key in keys {
                found.extend(optional_row(connection, sql, [key.0], |row| Ok(TaskKey(row.get(0)?)))?);
            }
            Ok(found)
        })
    }

    fn owed_jobs(&self) -> StoreFuture<Vec<(String, u64)>> {
        self.read(|Reader { connection, .. }| {
            let sql = "SELECT kind, count(*) FROM job GROUP BY kind ORDER BY kind";
            rows(connection, sql, [], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned())))
        })
    }

    fn jobs_named(&self, prefix: &str, after: &str, max: usize) -> StoreFuture<Vec<NewJob>> {
        let (first, end, after) = (prefix.to_owned(), end_of(prefix), after.to_owned());
        self.read(move |Reader { connection, .. }| {
            let sql = "SELECT run_at, name, kind, body FROM job WHERE name >= ?1 AND name < ?2 AND name > ?3 \
                       ORDER BY name LIMIT ?4";
            rows(connection, sql, params![first, end, after, limit(max)], job)
        })
    }

    fn count_jobs_named(&self, prefix: &str) -> StoreFuture<u64> {
        let (first, end) = (prefix.to_owned(), end_of(prefix));
        self.read(move |Reader { connection, .. }| {
            let sql = "SELECT count(*) FROM job WHERE name >= ?1 AND name < ?2";
            let count = optional_row(connection, sql, (first, end), |row| row.get::<_, i64>(0))?;
            Ok(count.unwrap_or(0).cast_unsigned())
        })
    }

    fn remove_jobs(&self, names: Vec<String>) -> StoreFuture<usize> {
        self.queue.write_exclusive(move |session| {
            session.transaction(|session| {
                let mut removed = 0;
                for name in &names {
                    removed += session.execute("DELETE FROM job WHERE name = ?1", [name])?;
                }
                Ok(removed)
            })
        })
    }

    /// From the task counters (table `tally`).
    fn count_tasks(
        &self,
        owner: Option<CallerId>,
        agents: Option<Vec<AgentName>>,
    ) -> StoreFuture<Vec<(TaskState, u64)>> {
        self.read(move |reader| {
            let Some(whose) = reader.whose(owner.as_ref(), agents.as_deref(), None)? else {
                return Ok(Vec::new());
            };
            let sql = "SELECT state, sum(n) FROM tally WHERE hidden = 0 AND (?1 IS NULL OR owner = ?1) \
                       AND (?2 IS NULL OR agent IN (SELECT value FROM json_each(?2))) \
                       GROUP BY state HAVING sum(n) > 0 ORDER BY state";
            rows(&reader.connection, sql, (whose.owner, whose.agents), |row| {
                Ok((state_from(0, row.get(0)?)?, row.get::<_, i64>(1)?.cast_unsigned()))
            })
        })
    }

    fn count_asked_since(&self, since: Timestamp) -> StoreFuture<u64> {
        self.read(move |reader| {
            let sql = "SELECT count(*) FROM task INDEXED BY task_waiting \
                       WHERE state IN (6, 8) AND state = ?1 AND status_at > ?2";
            let asked = state_number(TaskState::InputRequired);
            let count = rows(&reader.connection, sql, (asked, since.0), |row| row.get::<_, i64>(0))?;
            Ok(count.first().map_or(0, |count| count.cast_unsigned()))
        })
    }

    fn evict_health(&self, step: HealthStep, before: Timestamp, max: usize) -> StoreFuture<usize> {
        self.queue.write_exclusive(move |session| {
            session.transaction(|session| {
                let sql = "DELETE FROM health WHERE (step, at, agent, by, name) IN (SELECT step, at, agent, by, name \
                           FROM health WHERE step = ?1 AND at < ?2 ORDER BY at LIMIT ?3)";
                session.execute(sql, (health_step_number(step), before.0, limit(max)))
            })
        })
    }
}

fn refused<T: Send + 'static>(refusal: StoreError) -> StoreFuture<T> {
    Box::pin(std::future::ready(Err(refusal)))
}

impl SqliteStore {
    fn check_lines(&self, lines: &[JournalLine]) -> Result<(), StoreError> {
        let max = self.journal_line;
        let too_large = lines.iter().find(|line| line.payload.len() > max);
        too_large.map_or(Ok(()), |line| {
            let what = format!("the journal line {}", line.topic);
            Err(StoreError::TooLarge { what, bytes: line.payload.len(), max })
        })
    }
}

fn check_state(advance: &Advance) -> Result<(), StoreError> {
    let bytes = advance.state.len();
    if bytes <= CONSUMER_STATE_BYTES {
        return Ok(());
    }
    let what = format!("the state of the consumer {}", advance.consumer);
    Err(StoreError::TooLarge { what, bytes, max: CONSUMER_STATE_BYTES })
}

/// A consumer out of the columns fence, epoch, major, row, seq and state.
fn consumer(row: &Row<'_>) -> rusqlite::Result<ConsumerRow> {
    Ok(ConsumerRow {
        fence: Fence(row.get::<_, i64>(0)?.cast_unsigned()),
        cursor: cursor(row, 1)?,
        state: Bytes::from(row.get::<_, Vec<u8>>(5)?),
    })
}

/// The cursor of a consumer, beginning at a column; nothing before its first page.
pub(crate) fn cursor(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<FeedCursor>> {
    let Some(epoch) = row.get::<_, Option<i64>>(column)? else { return Ok(None) };
    let number = |offset| row.get::<_, i64>(column + offset);
    let position =
        Position { major: number(1)?.cast_unsigned(), row: number(2)?, seq: Seq(number(3)?.cast_unsigned()) };
    Ok(Some(FeedCursor { epoch: Epoch(epoch.cast_unsigned()), position }))
}

/// Behind all names that begin with a prefix.
fn end_of(prefix: &str) -> String {
    format!("{prefix}{}", char::MAX)
}

/// A job out of the columns run_at, name, kind and body.
fn job(row: &Row<'_>) -> rusqlite::Result<NewJob> {
    Ok(NewJob {
        run_at: Timestamp(row.get(0)?),
        name: row.get(1)?,
        kind: row.get(2)?,
        body: Bytes::from(row.get::<_, Vec<u8>>(3)?),
    })
}

fn claimed_job(row: &Row<'_>) -> rusqlite::Result<ClaimedJob> {
    Ok(ClaimedJob { job: job(row)?, attempts: row.get(4)? })
}
