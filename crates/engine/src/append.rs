//! The append, the only way to change a task: encode, commit, and only then update memory.
//!
//! It runs under the task's `writing` lock and inside spawned work that a disconnecting caller cannot drop, because
//! memory would not follow a commit otherwise.
//!
//! A task's version is the sequence number of its last event: whatever a reader could see adds to the log, so one
//! number serves as the optimistic lock too. The one append without an event is the claim of a queued turn, which
//! changes the owner of the fence and nothing else.

use bytes::Bytes;

use crate::batch::{Batch, SealedBatch};
use crate::engine::EngineState;
use crate::event::Event;
use crate::fold::{Fold, task_line};
use crate::ids::{Epoch, Fence, Seq};
use crate::live_task::{Core, LiveTask};
use crate::reason::Reason;
use crate::store::{Append, AppendGuard, Phase, RowState, SideWrites, StoreError};

/// No snapshot is taken for less than this.
const SNAPSHOT_BYTES: usize = 64 << 10;

/// Who appends.
pub(crate) enum AppendKind {
    /// The running turn; guarded by its fence.
    Owner(Fence),
    /// Any other writer; guarded by the log's version.
    Inbox,
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
}

impl LiveTask {
    /// The owner append: writes the running turn's output. If the store fails the output stays uncommitted.
    pub(crate) async fn flush(&self, engine: &EngineState, sides: SideWrites) -> Result<(), StoreError> {
        let _writing = self.writing.lock().await;
        let (batch, row, fence) = {
            let mut core = self.core.lock();
            let fence = core.turn_fence;
            if core.row.fence != fence || core.is_done() {
                return Err(StoreError::Fenced);
            }
            let mut batch = std::mem::take(&mut core.output.batch);
            if batch.is_empty() {
                return Ok(());
            }
            // A row is no larger than what a reader takes at a time, unless one event is.
            core.output.batch = batch.split_off(engine.settings.uncommitted_bytes);
            let batch = self.hold_back_completion(&mut core, batch);
            core.output.in_flight = (batch.bytes(), batch.len());
            let row = self.row_after(engine, &core, &batch.events);
            (batch, row, fence)
        };
        let count = batch.len() as u64;
        let refusable = !sides.is_empty() || self.core.lock().key.is_none();
        let writing = PendingAppend { batch, row, kind: AppendKind::Owner(fence), sides, refusable };
        let result = self.write(engine, writing).await;
        let mut core = self.core.lock();
        core.output.in_flight = (0, 0);
        let outcome = match result {
            Ok(_) => {
                core.output.committed += count;
                Ok(())
            }
            Err((error, mut unwritten)) => {
                unwritten.extend(std::mem::take(&mut core.output.batch));
                core.output.batch = unwritten;
                Err(error)
            }
        };
        drop(core);
        self.wake();
        outcome
    }

    /// COMPLETED with unread messages ends the turn, not the task: it becomes a WORKING status.
    fn hold_back_completion(&self, core: &mut Core, batch: Batch) -> Batch {
        let taken = core.output.taken;
        let has_unread = core.fold.kernel.unread.iter().any(|unread| unread.seq > taken);
        let completes = matches!(batch.events.last(), Some(Event::StatusUpdate(update))
            if update.status.state == switchboard_a2a::TaskState::Completed);
        if !has_unread || !completes {
            return batch;
        }
        let mut events = batch.events;
        if let Some(Event::StatusUpdate(update)) = events.last_mut() {
            update.status.state = switchboard_a2a::TaskState::Working;
        }
        core.output.run.turn_over = true;
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
                        row.expires_at = engine.expiry_of(core);
                        row.phase = if self.may_park() { Phase::Parked } else { row.phase };
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

    /// An inbox append: by any writer that is not the running turn, guarded by an optimistic lock on the log's version.
    /// `decide` sees the task as the log has it and says what to write, or refuses; it is asked again if the log has
    /// grown meanwhile.
    pub(crate) async fn inbox<E: From<StoreError>>(
        &self,
        engine: &EngineState,
        mut decide: impl FnMut(&mut Core) -> Result<PendingAppend, E>,
    ) -> Result<Seq, E> {
        let _writing = self.writing.lock().await;
        loop {
            let pending = decide(&mut self.core.lock())?;
            match self.write(engine, pending).await {
                Ok(first) => {
                    self.wake();
                    return Ok(first);
                }
                Err((StoreError::Stale, _)) => self.reload(engine).await?,
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
    async fn write(&self, engine: &EngineState, writing: PendingAppend) -> Result<Seq, (StoreError, Batch)> {
        let PendingAppend { batch, row, kind, sides, refusable } = writing;
        let is_watched = sides.webhook.is_some();
        let sealed = batch.seal();
        let (append, next) = {
            let core = self.core.lock();
            let guard = match (core.key, kind) {
                (None, _) => AppendGuard::Create(self.task.clone()),
                (Some(key), AppendKind::Owner(fence)) => AppendGuard::Owner { key, fence },
                (Some(key), AppendKind::Inbox) => AppendGuard::Inbox { key, version: core.last_seq },
            };
            let next = core.snapshot_due(&row, &sealed).then(|| core.fold_with(&sealed));
            let append = Append {
                guard,
                events: sealed.lines.clone(),
                count: u32::try_from(sealed.events.len()).unwrap_or(u32::MAX),
                row: row.clone(),
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
        let mut core = self.core.lock();
        match (core.row.phase == Phase::Parked, row.phase == Phase::Parked) {
            (false, true) => engine.admission.parked.change(&self.task.owner, 1),
            (true, false) => engine.admission.parked.change(&self.task.owner, -1),
            _ => {}
        }
        core.key = Some(appended.key);
        core.commit(appended.first_seq, &sealed, row, next, engine.epoch);
        core.last_append_at = engine.clock.now();
        core.unstored = None;
        core.watched |= is_watched;
        if core.watched {
            engine.notify_listener(appended.key);
        }
        engine.record_metrics(&self.task, &core, &sealed.events);
        Ok(appended.first_seq)
    }
}

impl Core {
    fn snapshot_due(&self, row: &RowState, sealed: &SealedBatch) -> bool {
        if self.is_done() && sealed.events.is_empty() {
            return false;
        }
        let grown = self.since_snapshot + sealed.lines.len();
        row.phase == Phase::Done || grown >= self.snapshot_bytes.max(SNAPSHOT_BYTES)
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

    /// Updates memory after a commit.
    fn commit(&mut self, first: Seq, sealed: &SealedBatch, row: RowState, next: Option<(Fold, Bytes)>, epoch: Epoch) {
        let count = sealed.events.len() as u64;
        match next {
            Some((fold, snapshot)) => {
                self.fold = fold;
                self.since_snapshot = 0;
                self.snapshot_bytes = snapshot.len();
                if row.phase == Phase::Done {
                    self.ended_json = Some(task_line(&snapshot));
                }
            }
            None => {
                for (index, event) in sealed.events.iter().enumerate() {
                    self.fold.apply(first.plus(index as u64), event);
                }
                self.since_snapshot += sealed.lines.len();
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
        if self.output.batch.is_empty() {
            self.output.state = row.state;
        }
        self.output.status_at = self.output.status_at.max(row.status_at);
        if self.fold.kernel.cancel_requested && row.phase != Phase::Done {
            // Under the same lock: the turn must not park the task after this commit.
            self.output.stop.get_or_insert(Reason::CanceledByCaller);
        }
        self.row = row;
    }
}
