//! One append: its guard, then the event row, the task's row, the idempotency key, the cooldown, the webhook and the
//! counters.
//!
//! Everything that can refuse it is checked before anything is written, so that a refusal leaves no trace.

use rusqlite::{OptionalExtension, params};
use switchboard_a2a::Timestamp;
use switchboard_engine::ids::{Fence, Seq, TaskKey};
use switchboard_engine::store::{
    Append, AppendGuard, Appended, Holder, IdempotencyRecord, Phase, RowState, StoreError, TaskIdentity,
};

use super::counters::CounterKey;
use super::session::Session;
use crate::sqlite::columns::{
    Identifier, IdentifierText, phase_from, phase_number, state_from, state_number, via_number,
};
use crate::sqlite::event_lines::Fragments;
use crate::sqlite::node::Node;

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
    owner: i64,
    agent: i64,
    row: RowState,
    holder: Option<i64>,
    last_seq: i64,
    webhooks: i64,
    fragments: Fragments,
}

impl Session<'_> {
    /// Writes an append of a node.
    pub(crate) fn append(&mut self, append: &Append, node: &Node) -> Result<Appended, AppendFailure> {
        if (append.count == 0) != append.events.is_empty() {
            let words = format!("an append of {} events has {} bytes of them", append.count, append.events.len());
            return Err(AppendFailure::Refused(StoreError::Failed(words)));
        }
        if !node.is_live() {
            return Err(AppendFailure::Refused(StoreError::Closed));
        }
        let (known, claims) = match &append.guard {
            AppendGuard::Create(new) => return self.create(new, append, node),
            AppendGuard::Owner(known) | AppendGuard::Inbox(known) => (known, false),
            AppendGuard::Claim(known) => (known, true),
        };
        let found = self.find(known.key)?;
        let row = append.row.onto(&found.row);
        let changes = append.count > 0 || row != found.row;
        let refusal = if found.row.phase == Phase::Done && changes {
            Some(StoreError::Ended)
        } else if found.row.fence != known.fence {
            Some(StoreError::Fenced)
        } else if Seq(found.last_seq.cast_unsigned()) != known.version {
            Some(StoreError::Stale)
        } else if claims && node.holder(found.holder) == Holder::Other {
            Some(StoreError::Held)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            return Err(AppendFailure::Refused(refusal));
        }
        let holder = match row.phase {
            Phase::Running if claims => Some(node.number()),
            Phase::Running => found.holder,
            _ => None,
        };
        self.extend(known.key, &found, append, (&row, holder))
    }

    fn create(&mut self, new: &TaskIdentity, append: &Append, node: &Node) -> Result<Appended, AppendFailure> {
        let owner = self.names.number(&mut self.statements, new.owner.as_str())?;
        let agent = self.names.number(&mut self.statements, new.agent.as_str())?;
        let ancestors = new.lineage.ancestors;
        let payer = match &new.lineage.payer {
            Some(payer) => Some(self.names.number(&mut self.statements, payer.as_str())?),
            None => None,
        };
        let send_owner = self.check_send(append.sides.send.as_ref())?;
        self.check_cooldown(append.sides.cooldown.as_ref())?;
        self.check_tree(ancestors, append.sides.tree)?;
        let row = &append.row.onto(&RowState::default());
        let plan = self.plan_webhook(None, row, append)?;
        let key = self.next_task;
        let event = (append.count > 0).then_some(self.next_event);
        let snapshot_row = append.snapshot.as_ref().and(event);
        let holder = (row.phase == Phase::Running).then(|| node.number());
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
            holder,
            row.expires_at.map(|at| at.0),
            row.hidden,
            row.recoveries,
            append.count,
            event,
            snapshot_row,
            append.events.len().cast_signed(),
            ancestors.map(|ancestors| ancestors.parent.0),
            ancestors.map(|ancestors| ancestors.root.0),
            payer,
            via_number(new.lineage.via),
        ])?;
        if inserted == 0 {
            return Err(AppendFailure::Refused(StoreError::Stale));
        }
        self.next_task += 1;
        let fragments = Fragments::new(new.id.as_str(), new.context.as_str());
        let event = self.insert_event(key, 1, append, &fragments)?;
        self.write_note(key, append)?;
        self.insert_send(send_owner, key, 1, append.sides.send.as_ref())?;
        self.take_cooldown(append.sides.cooldown.as_ref())?;
        self.write_webhook(key, plan)?;
        self.counters.add(counter(owner, agent, row), 1);
        let epoch = self.start.epoch;
        Ok(Appended { key: TaskKey(key), first_seq: Seq(1), row: event.unwrap_or(0), epoch })
    }

    /// Adds to a task that is there; `after` is its row with the change made, and who holds its turn then.
    fn extend(
        &mut self,
        key: TaskKey,
        found: &Found,
        append: &Append,
        after: (&RowState, Option<i64>),
    ) -> Result<Appended, AppendFailure> {
        let send_owner = self.check_send(append.sides.send.as_ref())?;
        self.check_cooldown(append.sides.cooldown.as_ref())?;
        let plan = self.plan_webhook(Some((key, found.webhooks)), after.0, append)?;
        let first_seq = found.last_seq + 1;
        let event = self.insert_event(key.0, first_seq, append, &found.fragments)?;
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
        self.update_task(key, found, append, after, snapshot_row)?;
        self.insert_send(send_owner, key.0, first_seq, append.sides.send.as_ref())?;
        self.take_cooldown(append.sides.cooldown.as_ref())?;
        self.write_webhook(key.0, plan)?;
        let (owner, agent) = (found.owner, found.agent);
        self.counters.moved(counter(owner, agent, &found.row), counter(owner, agent, after.0));
        let (row, epoch) = (event.unwrap_or(0), self.start.epoch);
        Ok(Appended { key, first_seq: Seq(first_seq.cast_unsigned()), row, epoch })
    }

    fn find(&mut self, key: TaskKey) -> Result<Found, AppendFailure> {
        let found = self.statements.find_task.query_row([key.0], |row| {
            let (IdentifierText(id), IdentifierText(context)) = (row.get(12)?, row.get(13)?);
            Ok(Found {
                fragments: Fragments::new(&id, &context),
                owner: row.get(0)?,
                agent: row.get(1)?,
                row: RowState {
                    state: state_from(2, row.get(2)?)?,
                    status_at: Timestamp(row.get(3)?),
                    phase: phase_from(4, row.get(4)?)?,
                    fence: Fence(row.get::<_, i64>(5)?.cast_unsigned()),
                    expires_at: row.get::<_, Option<i64>>(6)?.map(Timestamp),
                    hidden: row.get(7)?,
                    recoveries: row.get(10)?,
                },
                holder: row.get(11)?,
                last_seq: row.get(8)?,
                webhooks: row.get(9)?,
            })
        });
        found.optional()?.ok_or(AppendFailure::Refused(StoreError::Missing))
    }

    fn insert_event(
        &mut self,
        key: i64,
        first_seq: i64,
        append: &Append,
        fragments: &Fragments,
    ) -> rusqlite::Result<Option<i64>> {
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
            fragments.leave_out(&append.events),
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
        (row, holder): (&RowState, Option<i64>),
        snapshot_row: Option<i64>,
    ) -> rusqlite::Result<()> {
        let last_seq = found.last_seq + i64::from(append.count);
        let fence = row.fence.0.cast_signed();
        let bytes = append.events.len().cast_signed();
        let before = &found.row;
        let indexes_stay = (row.state, row.status_at, row.phase, row.expires_at, row.hidden)
            == (before.state, before.status_at, before.phase, before.expires_at, before.hidden);
        if indexes_stay {
            let changes = params![key.0, fence, holder, row.recoveries, last_seq, snapshot_row, bytes];
            self.statements.extend_task.execute(changes)?;
            return self.write_note(key.0, append);
        }
        self.statements.update_task.execute(params![
            key.0,
            state_number(row.state),
            row.status_at.0,
            phase_number(row.phase),
            fence,
            holder,
            row.expires_at.map(|at| at.0),
            row.hidden,
            row.recoveries,
            last_seq,
            snapshot_row,
            bytes,
            append.note,
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
        if !self.sent_keys.excludes(scope) && self.statements.send_exists.exists((owner, &scope.address, &scope.key))? {
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
        self.sent_keys.add(scope);
        self.statements.insert_send.execute(params![owner, scope.address, scope.key, &send.digest[..], key, seq])?;
        Ok(())
    }
}

fn counter(owner: i64, agent: i64, row: &RowState) -> CounterKey {
    CounterKey { owner, agent, state: state_number(row.state), hidden: row.hidden, parked: row.phase == Phase::Parked }
}
