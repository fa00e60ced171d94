//! The order of recovery, for each agent by itself.
//!
//! Turns that had begun hold something: a conversation, a repository, half of their work. So they get their permits
//! first, the oldest before the others, and have begun again before any other turn of their agent does. Behind them come
//! those that were queued, in their order, and then new ones.
//!
//! Where several nodes share the store, recovery goes on as long as the node: any node takes up the turns of one that
//! has stopped, and queued turns of a node that is full. Which node it is, the claim decides.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use switchboard_a2a::TaskState;
use switchboard_admission::CounterPermit;

use super::{Claim, PAGE, RecoveredTurn, has_lost_turn};
use crate::engine::EngineState;
use crate::error::Error;
use crate::ids::{AgentName, TaskKey};
use crate::live_task::{Core, LiveTask};
use crate::queue::QueuePriority;
use crate::reason::Reason;
use crate::store::{Holder, Phase, StoreError, TaskRow};

/// Keeps an agent from beginning new turns while its tasks are recovered.
struct RecoveryGate {
    engine: Arc<EngineState>,
    recovering: CounterPermit,
}

impl Drop for RecoveryGate {
    fn drop(&mut self) {
        self.recovering.set_held(false);
        self.engine.start_queued();
    }
}

/// A task that is being recovered; dropping it lets the next look find the task again.
pub(super) struct RecoveryMark {
    engine: Arc<EngineState>,
    key: TaskKey,
}

impl RecoveryMark {
    /// Nothing if the task is being recovered already, or waits in this node's queue.
    fn set(engine: &Arc<EngineState>, row: &TaskRow) -> Option<Self> {
        let waits_here = engine.live.get(&row.task.id).is_some_and(|live| engine.admission.is_queued(&live));
        let is_new = !waits_here && engine.recovering.lock().insert(row.key);
        is_new.then(|| Self { engine: engine.clone(), key: row.key })
    }
}

impl Drop for RecoveryMark {
    fn drop(&mut self) {
        self.engine.recovering.lock().remove(&self.key);
    }
}

impl EngineState {
    /// Reads the unfinished tasks of an earlier process and recovers them in the background. Where nodes share the store,
    /// it goes on to look for those of nodes that have stopped.
    pub(crate) async fn start_recovery(self: &Arc<Self>) {
        let mut unfinished = self.unfinished_tasks().await;
        let mut gate = true;
        if let Ok(rows) = &mut unfinished {
            self.recover_all(std::mem::take(rows), gate);
            gate = false;
        }
        if !gate && !self.is_shared {
            return;
        }
        let engine = self.clone();
        tokio::spawn(async move {
            loop {
                if let Err(error) = &unfinished {
                    tracing::error!(%error, "unfinished tasks could not be read, trying again");
                }
                if !engine.pause().await {
                    return;
                }
                unfinished = engine.unfinished_tasks().await;
                if engine.closing.is_cancelled() {
                    return;
                }
                if let Ok(rows) = &mut unfinished {
                    engine.recover_all(std::mem::take(rows), gate);
                    gate = false;
                    if !engine.is_shared {
                        return;
                    }
                }
            }
        });
    }

    /// What no live node runs and has not ended, oldest first.
    async fn unfinished_tasks(&self) -> Result<Vec<TaskRow>, StoreError> {
        let mut all = Vec::new();
        loop {
            let after = all.last().map_or(TaskKey(0), |row: &TaskRow| row.key);
            let rows = self.store.unfinished(after, PAGE).await?;
            if rows.is_empty() {
                return Ok(all);
            }
            all.extend(rows);
        }
    }

    /// Recovers tasks. At the start new turns wait behind them (`gate`). Later a node takes no more queued turns than it
    /// has permits for: the others are for the nodes that have them in their queues.
    fn recover_all(self: &Arc<Self>, rows: Vec<TaskRow>, gate: bool) {
        let free = self.settings.running_tasks.saturating_sub(self.admission.running.held());
        let mut queued_left = if gate { usize::MAX } else { free };
        let mut agents: HashMap<AgentName, Vec<(RecoveryMark, TaskRow)>> = HashMap::new();
        for row in rows {
            let is_queued = !had_begun(&row);
            if is_queued && queued_left == 0 {
                continue;
            }
            // Those that wait here already take none of it: they may wait for their agent, with permits free.
            let Some(mark) = RecoveryMark::set(self, &row) else { continue };
            queued_left -= usize::from(is_queued);
            agents.entry(row.task.agent.clone()).or_default().push((mark, row));
        }
        for (agent, rows) in agents {
            let hosted = self.directory.find(&agent).filter(|_| gate);
            let gate =
                hosted.map(|hosted| RecoveryGate { engine: self.clone(), recovering: hosted.recovering.acquire() });
            let engine = self.clone();
            self.work.spawn(async move {
                engine.recover_agent(rows).await;
                drop(gate);
            });
        }
    }

    /// Recovers a turn of this node whose run was dropped because the log no longer had what it worked on.
    pub(crate) async fn recover_dropped(self: &Arc<Self>, live: &LiveTask) {
        let is_dropped = {
            let core = live.core.lock();
            core.holder == Holder::This && has_lost_turn(&core)
        };
        if !is_dropped {
            return;
        }
        if self.closing.is_cancelled() {
            // Held until the shutdown has marked it.
            return self.drained.cancelled().await;
        }
        match self.store.row(&live.task.id).await {
            Ok(row) => self.recover_all(row.into_iter().collect(), false),
            Err(error) => tracing::error!(task = %live.task.id, %error, "a dropped turn could not be recovered"),
        }
    }

    /// Recovers the tasks of one agent. One that the store fails on does not hold up the others.
    async fn recover_agent(self: &Arc<Self>, rows: Vec<(RecoveryMark, TaskRow)>) {
        let at_once = self.settings.parallel_recoveries.max(1);
        let (begun, queued): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, row)| had_begun(row));
        let mut waiting = Vec::new();
        let mut going_on = Vec::new();
        let mut decisions =
            stream::iter(begun).map(|(mark, row)| self.clone().decide_or_retry(mark, row)).buffered(at_once);
        while let Some(decided) = decisions.next().await {
            match decided {
                Some(decided) if decided.1.waits => waiting.push(decided),
                Some(decided) => going_on.push(decided),
                None => {}
            }
        }
        let mut going_on = going_on.into_iter();
        for (mark, decided) in going_on.by_ref() {
            if self.closing.is_cancelled() {
                // Until the shutdown has marked this one and those behind it.
                return self.drained.cancelled().await;
            }
            self.resume(mark, decided).await;
        }
        let mut still_queued =
            stream::iter(queued).map(|(mark, row)| self.clone().decide_or_retry(mark, row)).buffered(at_once);
        while let Some(decided) = still_queued.next().await {
            waiting.extend(decided);
        }
        waiting.sort_by_key(|(_, decided)| decided.row.key);
        for (mark, decided) in waiting {
            self.requeue(mark, decided).await;
        }
    }

    async fn decide_or_retry(
        self: Arc<Self>,
        mark: RecoveryMark,
        row: TaskRow,
    ) -> Option<(RecoveryMark, RecoveredTurn)> {
        let mut claimed = None;
        match self.decide_or_find_queued(&row, &mut claimed).await {
            Ok(decided) => decided.map(|decided| (mark, decided)),
            Err(error) => {
                self.retry_later(mark, row, claimed, error);
                None
            }
        }
    }

    async fn decide_or_find_queued(
        self: &Arc<Self>,
        row: &TaskRow,
        claimed: &mut Claim,
    ) -> Result<Option<RecoveredTurn>, Error> {
        // Of all agents together; first come, first served, and each has only so many that wait. Nothing closes them.
        let _slot = self.recovery_slots.acquire().await;
        if self.closing.is_cancelled() && claimed.is_none() {
            return Ok(None);
        }
        if had_begun(row) { self.decide(row, claimed).await } else { self.find_queued(row).await }
    }

    /// Retries the recovery of one task until the store works.
    fn retry_later(self: &Arc<Self>, mark: RecoveryMark, row: TaskRow, mut claimed: Claim, error: Error) {
        let engine = self.clone();
        let report = move |row: &TaskRow, error: &Error| {
            tracing::error!(task = %row.task.id, %error, "a task could not be taken up, trying again");
        };
        report(&row, &error);
        self.work.spawn(async move {
            while engine.pause().await {
                match engine.decide_or_find_queued(&row, &mut claimed).await {
                    Ok(Some(decided)) if decided.waits => return engine.requeue(mark, decided).await,
                    Ok(Some(decided)) => return engine.resume(mark, decided).await,
                    Ok(None) => return,
                    Err(error) => report(&row, &error),
                }
            }
            if claimed.is_some() {
                // Until the shutdown has marked it.
                engine.drained.cancelled().await;
            }
        });
    }

    /// A task that was queued and had not begun, if it still waits.
    async fn find_queued(&self, row: &TaskRow) -> Result<Option<RecoveredTurn>, Error> {
        let is_queued = |core: &Core| core.row.phase == Phase::Queued;
        let live = self.find_task(&row.task.id).await?.filter(|live| is_queued(&live.core.lock()));
        let Some(live) = live else { return Ok(None) };
        if row.state.state != TaskState::Submitted {
            // It has run before, and was answered.
            self.link_children(&live).await?;
        }
        if live.hosted.is_none() {
            return self.fail_unserved(&live, is_queued).await.map(|()| None);
        }
        if self.is_orphaned(&live.task).await? {
            let ended = self.end(&live, TaskState::Canceled, None, Reason::CanceledByCaller, is_queued);
            return ended.await.map(|()| None);
        }
        Ok(Some(RecoveredTurn { row: row.clone(), live, begin: None, waits: true }))
    }

    /// Resumes a turn that had begun if there is a permit, else queues it.
    async fn resume(self: &Arc<Self>, mark: RecoveryMark, decided: RecoveredTurn) {
        let Some(hosted) = decided.live.hosted.clone() else { return };
        let Some(permit) = self.try_permit(&hosted, decided.live.task.payer()) else {
            return self.requeue(mark, decided).await;
        };
        let RecoveredTurn { live, begin, .. } = decided;
        {
            let mut core = live.core.lock();
            // A shutdown may have marked the turn for the next process.
            if !has_lost_turn(&core) || core.row.phase != Phase::Running {
                return;
            }
            let fence = core.row.fence;
            if begin.is_none() || core.turn.start(fence).is_err() {
                return;
            }
        }
        if let Some(begin) = begin {
            // The next turn must find locked what this one locks.
            let _ = self.begin_run(live, permit, begin).await;
        }
    }

    /// Queues a turn without a permit, or one that had not begun to work, before all new ones.
    async fn requeue(self: &Arc<Self>, mark: RecoveryMark, decided: RecoveredTurn) {
        if !had_begun(&decided.row) {
            // Its row says already that it is queued.
            return self.enqueue_again(QueuePriority::Recovered, decided.live);
        }
        let marked = decided.live.core.lock().row.fence.next();
        match self.mark_requeued(&decided.live).await {
            Ok(true) => {
                if let Some(begin) = decided.begin {
                    let mut core = decided.live.core.lock();
                    if core.row.phase != Phase::Requeued || core.row.fence != marked {
                        // Claimed by another node before it was marked or since: what it begins with may be an old
                        // message. If it is lost again, the next look finds it.
                        return;
                    }
                    let requeued = core.turn.requeue(begin, marked);
                    debug_assert!(requeued.is_ok(), "{requeued:?}");
                }
                let priority = if decided.waits { QueuePriority::Recovered } else { QueuePriority::Started };
                self.enqueue_again(priority, decided.live);
            }
            Ok(false) => {}
            Err(error) => self.retry_later(mark, decided.row, Some(decided.live), error.into()),
        }
    }
}

fn had_begun(row: &TaskRow) -> bool {
    row.state.phase != Phase::Queued
}
