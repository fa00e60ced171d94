//! One append: its guard, then the event row, the task's row, the idempotency key, the webhook and the counters.
//!
//! Everything that can refuse it is checked before anything is written, so that a refusal leaves no trace.

use rusqlite::{OptionalExtension, params};
use switchboard_engine::ids::{Fence, Seq, TaskKey};
use switchboard_engine::store::{
    Append, AppendGuard, Appended, IdempotencyRecord, NewTask, Phase, RowState, StoreError,
};

use super::counters::CounterKey;
use super::session::Session;
use crate::sqlite::columns::{Identifier, phase_number, state_number};

/// Why an append was not written.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) enum AppendFailure {
    /// By a guard or limit; nothing was written.
    Refused(StoreError),
    /// Perhaps halfway through.
    Database(#[from] rusqlite::Error),
}

/// The columns of a task that the next append needs.
struct Found {
    counter: CounterKey,
    status_at: i64,
    phase: i64,
    fence: i64,
    expires_at: Option<i64>,
    last_seq: i64,
    webhooks: i64,
}

impl Session<'_> {
    pub(crate) fn append(&mut self, append: &Append) -> Result<Appended, AppendFailure> {
        if (append.count == 0) != append.events.is_empty() {
            let words = format!("an append of {} events has {} bytes of them", append.count, append.events.len());
            return Err(AppendFailure::Refused(StoreError::Failed(words)));
        }
        match &append.guard {
            AppendGuard::Create(new) => self.create(new, append),
            AppendGuard::Owner { key, fence } => {
                let found = self.find(*key)?;
                if Fence(found.fence.cast_unsigned()) != *fence || found.phase == phase_number(Phase::Done) {
                    return Err(AppendFailure::Refused(StoreError::Fenced));
                }
                self.extend(*key, &found, append)
            }
            AppendGuard::Inbox { key, version } => {
                let found = self.find(*key)?;
                if Seq(found.last_seq.cast_unsigned()) != *version {
                    return Err(AppendFailure::Refused(StoreError::Stale));
                }
                // Nothing follows the terminal event.
                if found.phase == phase_number(Phase::Done) && append.count > 0 {
                    return Err(AppendFailure::Refused(StoreError::Fenced));
                }
                self.extend(*key, &found, append)
            }
        }
    }

    fn create(&mut self, new: &NewTask, append: &Append) -> Result<Appended, AppendFailure> {
        let owner = self.names.number(&mut self.statements, new.owner.as_str())?;
        let agent = self.names.number(&mut self.statements, new.agent.as_str())?;
        let send_owner = self.check_send(append.sides.send.as_ref())?;
        let plan = self.plan_webhook(None, append)?;
        let key = self.next_task;
        let event = (append.count > 0).then_some(self.next_event);
        let snapshot_row = append.snapshot.as_ref().and(event);
        let row = &append.row;
        let inserted = self.statements.insert_task.execute(params![
            key,
            Identifier::new(new.id.as_str()),
            owner,
            agent,
            Identifier::new(new.context.as_str()),
            state_number(row.state),
            row.status_at.0,
            phase_number(row.phase),
            row.fence.0.cast_signed(),
            self.lease(row),
            row.expires_at.map(|at| at.0),
            row.hidden,
            row.recoveries,
            append.count,
            event,
            snapshot_row,
            append.events.len().cast_signed(),
        ])?;
        if inserted == 0 {
            return Err(AppendFailure::Refused(StoreError::Stale));
        }
        self.next_task += 1;
        let event = self.insert_event(key, 1, append)?;
        self.write_note(key, append)?;
        self.insert_send(send_owner, key, 1, append.sides.send.as_ref())?;
        self.write_webhook(key, plan)?;
        self.counters.add(counter(owner, agent, row), 1);
        Ok(Appended { key: TaskKey(key), first_seq: Seq(1), row: event.unwrap_or(0) })
    }

    fn extend(&mut self, key: TaskKey, found: &Found, append: &Append) -> Result<Appended, AppendFailure> {
        let send_owner = self.check_send(append.sides.send.as_ref())?;
        let plan = self.plan_webhook(Some((key, found.webhooks)), append)?;
        let first_seq = found.last_seq + 1;
        let event = self.insert_event(key.0, first_seq, append)?;
        if first_seq == 1 && event.is_some() {
            self.statements.set_first_row.execute((key.0, event))?;
        }
        let snapshot_row = match (&append.snapshot, event) {
            (None, _) => None,
            (Some(_), Some(event)) => Some(event),
            // Without events the snapshot is as of the last event there is.
            (Some(snapshot), None) => {
                let row = params![key.0, &snapshot[..]];
                self.statements.set_snapshot.query_row(row, |row| row.get::<_, i64>(0)).optional()?
            }
        };
        self.update_task(key, found, append, snapshot_row)?;
        self.write_note(key.0, append)?;
        self.insert_send(send_owner, key.0, first_seq, append.sides.send.as_ref())?;
        self.write_webhook(key.0, plan)?;
        self.counters.moved(found.counter, counter(found.counter.owner, found.counter.agent, &append.row));
        Ok(Appended { key, first_seq: Seq(first_seq.cast_unsigned()), row: event.unwrap_or(0) })
    }

    fn find(&mut self, key: TaskKey) -> Result<Found, AppendFailure> {
        let found = self.statements.find_task.query_row([key.0], |row| {
            let phase: i64 = row.get(4)?;
            let counter = CounterKey {
                owner: row.get(0)?,
                agent: row.get(1)?,
                state: row.get(2)?,
                hidden: row.get(7)?,
                parked: phase == phase_number(Phase::Parked),
            };
            Ok(Found {
                counter,
                status_at: row.get(3)?,
                phase,
                fence: row.get(5)?,
                expires_at: row.get(6)?,
                last_seq: row.get(8)?,
                webhooks: row.get(9)?,
            })
        });
        found.optional()?.ok_or(AppendFailure::Refused(StoreError::Missing))
    }

    fn insert_event(&mut self, key: i64, first_seq: i64, append: &Append) -> rusqlite::Result<Option<i64>> {
        if append.count == 0 {
            return Ok(None);
        }
        let id = self.next_event;
        self.statements.insert_event.execute(params![
            id,
            key,
            first_seq,
            append.count,
            self.start.epoch.0.cast_signed(),
            &append.events[..],
            append.snapshot.as_deref(),
        ])?;
        self.next_event += 1;
        Ok(Some(id))
    }

    fn update_task(
        &mut self,
        key: TaskKey,
        found: &Found,
        append: &Append,
        snapshot_row: Option<i64>,
    ) -> rusqlite::Result<()> {
        let row = &append.row;
        let last_seq = found.last_seq + i64::from(append.count);
        let (state, phase) = (state_number(row.state), phase_number(row.phase));
        let expires_at = row.expires_at.map(|at| at.0);
        let (fence, lease) = (row.fence.0.cast_signed(), self.lease(row));
        let bytes = append.events.len().cast_signed();
        let indexes_stay = state == found.counter.state
            && row.status_at.0 == found.status_at
            && phase == found.phase
            && expires_at == found.expires_at
            && row.hidden == found.counter.hidden;
        if indexes_stay {
            let changes = params![key.0, fence, lease, row.recoveries, last_seq, snapshot_row, bytes];
            self.statements.extend_task.execute(changes)?;
            return Ok(());
        }
        self.statements.update_task.execute(params![
            key.0,
            state,
            row.status_at.0,
            phase,
            fence,
            lease,
            expires_at,
            row.hidden,
            row.recoveries,
            last_seq,
            snapshot_row,
            bytes,
        ])?;
        Ok(())
    }

    fn write_note(&mut self, key: i64, append: &Append) -> rusqlite::Result<()> {
        if let Some(note) = &append.note {
            self.statements.note_task.execute((key, note))?;
        }
        Ok(())
    }

    /// Refuses an idempotency key that is taken; returns the number of its owner.
    fn check_send(&mut self, send: Option<&IdempotencyRecord>) -> Result<i64, AppendFailure> {
        let Some(send) = send else { return Ok(0) };
        let scope = &send.scope;
        let owner = self.names.number(&mut self.statements, scope.owner.as_str())?;
        if self.statements.send_exists.exists((owner, &scope.address, &scope.key))? {
            return Err(AppendFailure::Refused(StoreError::KeyTaken));
        }
        Ok(owner)
    }

    fn insert_send(
        &mut self,
        owner: i64,
        key: i64,
        seq: i64,
        send: Option<&IdempotencyRecord>,
    ) -> rusqlite::Result<()> {
        let Some(send) = send else { return Ok(()) };
        let scope = &send.scope;
        self.statements.insert_send.execute(params![owner, scope.address, scope.key, &send.digest[..], key, seq])?;
        Ok(())
    }

    /// Only a running turn holds a lease, and only until the next start.
    fn lease(&self, row: &RowState) -> Option<i64> {
        (row.phase == Phase::Running).then_some(self.start.number)
    }
}

fn counter(owner: i64, agent: i64, row: &RowState) -> CounterKey {
    CounterKey { owner, agent, state: state_number(row.state), hidden: row.hidden, parked: row.phase == Phase::Parked }
}
