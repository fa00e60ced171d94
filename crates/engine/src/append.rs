//! The append, the only way to change a task: encode, commit, and only then update memory.
//!
//! It runs under the task's `writing` lock and inside spawned work that a disconnecting caller cannot drop, because
//! memory would not follow a commit otherwise.
//!
//! Several writers, on several nodes, may append to one task. Each names the version and the fence that it knows (an
//! optimistic lock); one that is behind catches up with the log and decides again, so no append is made from a task that
//! lacks another's event, and none fails because another was first.
//!
//! A task's version is the sequence number of its last event: whatever a reader could see adds to the log. The claim of a
//! queued turn has no event and changes the fence instead. A row that only becomes visible, and a webhook, change neither:
//! no other writer's decision depends on them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::batch::{Batch, SealedBatch};
use crate::engine::{EngineState, state_label};
use crate::event::Event;
use crate::fold::{Fold, task_line};
use crate::ids::Seq;
use crate::live_task::{Core, LiveTask, RunProgress};
use crate::review::Review;
use crate::store::feed::{FeedContent, FeedRow, WrittenOnce};
use crate::store::{
    Append, AppendGuard, Appended, EventRow, Holder, KnownVersion, Phase, RowPatch, RowState, SideWrites, StoreError,
};
use crate::transition;

/// No snapshot is taken for less than this.
const SNAPSHOT_BYTES: usize = 64 << 10;
/// A task whose log has at most this size when it ends has no snapshot, if all but its last append are so few events: its
/// log is a row or two, which are folded in a few microseconds, and the snapshot would store the same content a second time.
const FOLDED_BYTES: usize = 8 << 10;
const FOLDED_EVENTS: Seq = Seq(4);

/// Who appends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AppendKind {
    /// The running turn.
    Owner,
    /// Any other writer.
    Inbox,
    /// A writer that begins or takes over a turn on this node.
    Claim,
}

/// What an append is to write.
pub(crate) struct PendingAppend {
    pub(crate) batch: Batch,
    pub(crate) row: RowState,
    pub(crate) kind: AppendKind,
    pub(crate) sides: SideWrites,
    pub(crate) refusable: bool,
}

impl PendingAppend {
    /// An inbox append of events that the store may not refuse.
    pub(crate) fn inbox(events: Vec<Event>, row: RowState) -> Self {
        let batch = Batch::of(events);
        Self { batch, row, kind: AppendKind::Inbox, sides: SideWrites::default(), refusable: false }
    }

    /// The same, which also claims the turn for this node.
    pub(crate) fn claim(events: Vec<Event>, row: RowState) -> Self {
        Self { kind: AppendKind::Claim, ..Self::inbox(events, row) }
    }
}

impl LiveTask {
    /// The owner append: writes the running turn's output. If the store fails the output stays uncommitted.
    pub(crate) async fn flush(&self, engine: &EngineState, sides: SideWrites) -> Result<(), StoreError> {
        let _writing = self.writing.lock().await;
        loop {
            let Some(pending) = self.take_output(engine, &sides)? else { return Ok(()) };
            let count = pending.batch.len() as u64;
            let written = self.write(engine, pending).await;
            match self.settle_output(written, count) {
                // At once: other writers wait before they try again, so that the owner is not starved.
                Err(error) if error.is_behind() && self.core.lock().key.is_some() => self.catch_up(engine).await?,
                settled => {
                    self.wake();
                    return settled;
                }
            }
        }
    }

    /// Counts written output as committed; unwritten output goes back before what has come since.
    fn settle_output(&self, written: Result<Appended, (StoreError, Batch)>, count: u64) -> Result<(), StoreError> {
        let mut core = self.core.lock();
        core.output.in_flight = (0, 0);
        match written {
            Ok(_) => core.output.committed += count,
            Err((error, mut unwritten)) => {
                unwritten.extend(std::mem::take(&mut core.output.batch));
                core.output.batch = unwritten;
                return Err(error);
            }
        }
        Ok(())
    }

    /// What the running turn has produced, decided anew from the task as it is: whether COMPLETED is held back, and what
    /// its row becomes.
    fn take_output(&self, engine: &EngineState, sides: &SideWrites) -> Result<Option<PendingAppend>, StoreError> {
        let mut core = self.core.lock();
        if core.is_done() {
            return Err(StoreError::Ended);
        }
        if core.key.is_none() && engine.interrupting.is_cancelled() {
            return Err(StoreError::Closed);
        }
        let may_write = core.key.is_none() || core.turn.owns(core.row.fence);
        if !may_write {
            return Err(StoreError::Fenced);
        }
        let mut batch = std::mem::take(&mut core.output.batch);
        if batch.is_empty() {
            return Ok(None);
        }
        // A row is no larger than what a reader takes at a time, unless one event is.
        core.output.batch = batch.split_off(engine.settings.uncommitted_bytes);
        batch.date_after(core.row.status_at);
        let batch = self.hold_back_completion(engine, &mut core, batch);
        core.output.in_flight = (batch.bytes(), batch.len());
        let row = self.row_after(engine, &core, &batch.events);
        let refusable = (!sides.is_empty() || core.key.is_none()) && !self.task.is_child();
        Ok(Some(PendingAppend { batch, row, kind: AppendKind::Owner, sides: sides.clone(), refusable }))
    }

    /// COMPLETED with unread messages ends the turn, not the task: it becomes a WORKING status. The same if the result is to
    /// be mended.
    fn hold_back_completion(&self, engine: &EngineState, core: &mut Core, batch: Batch) -> Batch {
        let completes = matches!(batch.events.last(), Some(Event::StatusUpdate(update))
            if update.status.state == switchboard_a2a::TaskState::Completed);
        if !completes {
            return batch;
        }
        if core.next_unread().is_none() {
            return self.check_result(engine, core, batch);
        }
        let mut events = batch.events;
        if let Some(Event::StatusUpdate(update)) = events.last_mut() {
            update.status.state = switchboard_a2a::TaskState::Working;
        }
        core.turn.set_progress(RunProgress::Over);
        core.output.state = switchboard_a2a::TaskState::Working;
        Batch::of(events)
    }

    /// The task's row after the running turn's events.
    fn row_after(&self, engine: &EngineState, core: &Core, events: &[Event]) -> RowState {
        let mut row = core.row.clone();
        for event in events {
            match event {
                Event::StatusUpdate(update) => {
                    let state = update.status.state;
                    row.state = state;
                    row.status_at = update.status.timestamp.unwrap_or(row.status_at);
                    row.hidden = false;
                    row.recoveries = 0;
                    row.expires_at = None;
                    if state.is_terminal() {
                        row.phase = Phase::Done;
                    } else if state.is_interrupted() {
                        row.expires_at = engine.expiry_of(core, Review::of_event(event).as_ref());
                        row.phase = if self.may_park(core) { Phase::Parked } else { row.phase };
                    }
                }
                Event::ArtifactUpdate(_) => {
                    row.hidden = false;
                    row.recoveries = 0;
                }
                Event::Replied(_) => {
                    row.state = switchboard_a2a::TaskState::Completed;
                    row.phase = Phase::Done;
                }
                _ => {}
            }
        }
        row
    }

    /// An inbox append: by any writer that is not the running turn. `decide` sees the task as the log has it and says what
    /// to write, or refuses; it is asked again if the task has changed meanwhile.
    pub(crate) async fn inbox<E: From<StoreError>>(
        &self,
        engine: &EngineState,
        mut decide: impl FnMut(&mut Core) -> Result<PendingAppend, E>,
    ) -> Result<Seq, E> {
        let _writing = self.writing.lock().await;
        let mut attempts = 0;
        loop {
            let pending = decide(&mut self.core.lock())?;
            match self.write(engine, pending).await {
                Ok(appended) => {
                    self.wake();
                    return Ok(appended.first_seq);
                }
                Err((error, _)) if error.is_behind() => {
                    self.catch_up(engine).await?;
                    attempts += 1;
                    if attempts > 1 {
                        tokio::time::sleep(backoff(attempts)).await;
                    }
                }
                Err((error, _)) => return Err(E::from(error)),
            }
        }
    }

    /// An inbox append that is left out where `decide` finds nothing to do; says whether it was written.
    pub(crate) async fn inbox_if(
        &self,
        engine: &EngineState,
        mut decide: impl FnMut(&mut Core) -> Option<PendingAppend>,
    ) -> Result<bool, StoreError> {
        match self.inbox::<Option<StoreError>>(engine, |core| decide(core).ok_or(None)).await {
            Ok(_) => Ok(true),
            Err(None) => Ok(false),
            Err(Some(error)) => Err(error),
        }
    }

    /// One append. The caller holds `writing`. On failure the batch comes back unwritten.
    async fn write(&self, engine: &EngineState, writing: PendingAppend) -> Result<Appended, (StoreError, Batch)> {
        let PendingAppend { batch, row, kind, sides, refusable } = writing;
        let is_watched = sides.webhook.is_some();
        let sealed = batch.seal();
        let (append, next) = {
            let core = self.core.lock();
            if core.is_done() && !sealed.events.is_empty() {
                return Err((StoreError::Ended, sealed.unseal()));
            }
            if !transition::are_legal(core.row.state, &sealed.events) {
                // Not one that catching up would mend.
                let problem = format!("a status that may not follow {}", state_label(core.row.state));
                return Err((StoreError::Failed(problem), sealed.unseal()));
            }
            let next = core.snapshot_due(&row, &sealed).then(|| core.fold_with(&sealed));
            let append = Append {
                guard: self.guard(&core, kind),
                events: sealed.lines.clone(),
                count: u32::try_from(sealed.events.len()).unwrap_or(u32::MAX),
                row: match core.key {
                    Some(_) => RowPatch::between(&core.row, &row),
                    None => RowPatch::between(&RowState::default(), &row),
                },
                snapshot: next.as_ref().map(|(_, snapshot)| snapshot.clone()),
                note: sealed.events.iter().rev().find_map(|event| match event {
                    Event::Noted(value) => Some(value.as_str().to_owned()),
                    _ => None,
                }),
                sides,
                refusable,
            };
            (append, next)
        };
        let appended = match engine.store.append(append).await {
            Ok(appended) => appended,
            Err(error) => return Err((error, sealed.unseal())),
        };
        let expected = self.core.lock().last_seq.plus(1);
        if appended.first_seq != expected {
            // Only a store that does not keep to its guard does this. Memory never folds over a gap.
            tracing::error!(task = %self.task.id, %expected, first = %appended.first_seq, "the log has grown unnoticed");
            return match self.reload(engine).await {
                Ok(()) => Ok(appended),
                Err(error) => Err((error, Batch::default())),
            };
        }
        let hidden = row.hidden;
        let mut core = self.core.lock();
        let is_new = core.key.replace(appended.key).is_none();
        let holder = match row.phase {
            Phase::Running if is_new || kind != AppendKind::Inbox => Holder::This,
            Phase::Running => core.holder,
            _ => Holder::Unheld,
        };
        let waited = core.row.state.is_interrupted();
        core.commit(appended, &sealed, next);
        // Only where it is written: what memory catches up with was counted by its writer.
        match (core.row.phase == Phase::Parked, row.phase == Phase::Parked) {
            (false, true) => engine.admission.parked.change(&self.task.owner, 1),
            (true, false) => engine.admission.parked.change(&self.task.owner, -1),
            _ => {}
        }
        self.follow_row(&mut core, row, holder);
        core.last_append_at = engine.clock.now();
        if let Some(driven) = core.turn.driven_mut() {
            driven.unstored = None;
        }
        core.watched |= is_watched;
        engine.tell_of_append(appended.key, core.watched);
        engine.record_metrics(&self.task, &core, &sealed.events);
        engine.forget_closed_question(&core, waited);
        engine.see_question(&core, &sealed.events);
        if is_new
            && engine.is_shared
            && let Some(live) = engine.live.get(&self.task.id)
        {
            engine.live.index(appended.key, &live);
        }
        let has_ended = core.is_done();
        drop(core);
        if has_ended {
            self.tell_usage(engine);
        }
        self.feed(engine, appended, sealed, hidden);
        Ok(appended)
    }

    /// Gives a committed row to the readers of all rows, if there are any.
    fn feed(&self, engine: &EngineState, appended: Appended, sealed: SealedBatch, hidden: bool) {
        if engine.feed_ring.readers() == 0 || sealed.events.is_empty() {
            return;
        }
        let SealedBatch { events: written, lines, .. } = sealed;
        let events = EventRow {
            row: appended.row,
            first_seq: appended.first_seq,
            count: u32::try_from(written.len()).unwrap_or(u32::MAX),
            epoch: appended.epoch,
            events: lines,
        };
        let written = WrittenOnce::of(appended.first_seq, written);
        let (key, task) = (appended.key, Arc::clone(&self.task));
        let content = FeedContent::Events { key, task, hidden, events, written };
        engine.feed_ring.push(FeedRow { major: 0, row: appended.row, epoch: appended.epoch, content });
    }

    fn guard(&self, core: &Core, kind: AppendKind) -> AppendGuard {
        let Some(key) = core.key else { return AppendGuard::Create(self.task.clone()) };
        let known = KnownVersion { key, version: core.last_seq, fence: core.row.fence };
        match kind {
            AppendKind::Owner => AppendGuard::Owner(known),
            AppendKind::Inbox => AppendGuard::Inbox(known),
            AppendKind::Claim => AppendGuard::Claim(known),
        }
    }
}

/// How long a writer that is not the owner waits before it decides for the third and later times: longer each time, and
/// not as long as its competitor, whose number is another.
fn backoff(attempts: u32) -> Duration {
    let longest = 5u64.saturating_mul(1 << attempts.min(6)).min(200);
    Duration::from_millis(longest / 2 + uuid::Uuid::new_v4().as_u64_pair().1 % (longest / 2))
}

impl Core {
    fn snapshot_due(&self, row: &RowState, sealed: &SealedBatch) -> bool {
        if self.is_done() && sealed.events.is_empty() {
            return false;
        }
        let grown = self.since_snapshot + sealed.lines.len();
        let is_short = self.last_seq <= FOLDED_EVENTS && grown <= FOLDED_BYTES;
        (row.phase == Phase::Done && !is_short) || grown >= self.snapshot_bytes.max(SNAPSHOT_BYTES)
    }

    /// The fold after the commit, and its snapshot; the present one stays until then.
    fn fold_with(&self, sealed: &SealedBatch) -> (Fold, Bytes) {
        let mut fold = self.fold.clone();
        for (index, event) in sealed.events.iter().enumerate() {
            fold.apply(self.last_seq.plus(index as u64 + 1), event);
        }
        let snapshot = fold.snapshot();
        (fold, snapshot)
    }

    /// Lets the fold and the tail follow a commit; the row is for [`LiveTask::follow_row`].
    fn commit(&mut self, appended: Appended, sealed: &SealedBatch, next: Option<(Fold, Bytes)>) {
        let (first, epoch) = (appended.first_seq, appended.epoch);
        let count = sealed.events.len() as u64;
        match next {
            Some((fold, snapshot)) => {
                self.fold = fold;
                self.since_snapshot = 0;
                self.snapshot_bytes = snapshot.len();
                if self.fold.has_ended() {
                    self.ended_json = Some(task_line(&snapshot));
                }
            }
            None => {
                for (index, event) in sealed.events.iter().enumerate() {
                    self.fold.apply(first.plus(index as u64), event);
                }
                self.since_snapshot += sealed.lines.len();
                if self.fold.has_ended() {
                    self.ended_json = Some(self.fold.task_json());
                }
            }
        }
        self.bytes += sealed.lines.len() as u64;
        for event in sealed.logged(first, epoch) {
            self.remember(event);
        }
        if count > 0 {
            self.last_seq = first.plus(count - 1);
            self.last_epoch = epoch;
        }
    }
}
