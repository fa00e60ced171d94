//! The order of recovery, for each agent by itself.
//!
//! Turns that had begun hold something: a conversation, a repository, half of their work. So they get their permits
//! first, the oldest before the others, and have begun again before any other turn of their agent does. Behind them come
//! those that were queued, in their order, and then new ones.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use switchboard_admission::CounterPermit;

use super::{PAGE, RecoveredTurn, has_lost_turn};
use crate::engine::EngineState;
use crate::error::Error;
use crate::ids::{AgentName, TaskKey};
use crate::live_task::Core;
use crate::queue::QueuePriority;
use crate::store::{Phase, StoreError, TaskRow};

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

impl EngineState {
    /// Reads the unfinished tasks of an earlier process and recovers them in the background.
    pub(crate) async fn start_recovery(self: &Arc<Self>) {
        let mut unfinished = self.unfinished_tasks().await;
        if let Ok(rows) = unfinished {
            return self.recover_all(rows);
        }
        let engine = self.clone();
        self.work.spawn(async move {
            while let Err(error) = &unfinished {
                tracing::error!(%error, "unfinished tasks could not be read, trying again");
                if !engine.pause().await {
                    return;
                }
                unfinished = engine.unfinished_tasks().await;
            }
            engine.recover_all(unfinished.unwrap_or_default());
        });
    }

    /// What an earlier process was running or had queued, oldest first.
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

    fn recover_all(self: &Arc<Self>, rows: Vec<TaskRow>) {
        let mut agents: HashMap<AgentName, Vec<TaskRow>> = HashMap::new();
        for row in rows {
            agents.entry(row.task.agent.clone()).or_default().push(row);
        }
        for (agent, rows) in agents {
            let hosted = self.directory.find(&agent);
            let gate =
                hosted.map(|hosted| RecoveryGate { engine: self.clone(), recovering: hosted.recovering.acquire() });
            let engine = self.clone();
            self.work.spawn(async move {
                engine.recover_agent(rows).await;
                drop(gate);
            });
        }
    }

    /// Recovers the tasks of one agent. One that the store fails on does not hold up the others.
    async fn recover_agent(self: &Arc<Self>, rows: Vec<TaskRow>) {
        let at_once = self.settings.parallel_recoveries.max(1);
        let (begun, queued): (Vec<TaskRow>, Vec<TaskRow>) = rows.into_iter().partition(had_begun);
        let mut waiting = Vec::new();
        let mut going_on = Vec::new();
        let mut decisions = stream::iter(begun).map(|row| self.clone().decide_or_retry(row)).buffered(at_once);
        while let Some(decided) = decisions.next().await {
            match decided {
                Some(decided) if decided.waits => waiting.push(decided),
                Some(decided) => going_on.push(decided),
                None => {}
            }
        }
        for decided in going_on {
            self.resume(decided).await;
        }
        let mut still_queued = stream::iter(queued).map(|row| self.clone().decide_or_retry(row)).buffered(at_once);
        while let Some(decided) = still_queued.next().await {
            waiting.extend(decided);
        }
        waiting.sort_by_key(|decided| decided.row.key);
        for decided in waiting {
            self.requeue(decided).await;
        }
    }

    async fn decide_or_retry(self: Arc<Self>, row: TaskRow) -> Option<RecoveredTurn> {
        let mut claimed = false;
        match self.decide_or_find_queued(&row, &mut claimed).await {
            Ok(decided) => decided,
            Err(error) => {
                self.retry_later(row, claimed, error);
                None
            }
        }
    }

    async fn decide_or_find_queued(&self, row: &TaskRow, claimed: &mut bool) -> Result<Option<RecoveredTurn>, Error> {
        if had_begun(row) { self.decide(row, claimed).await } else { self.find_queued(row).await }
    }

    /// Retries the recovery of one task until the store works.
    fn retry_later(self: &Arc<Self>, row: TaskRow, mut claimed: bool, error: Error) {
        let engine = self.clone();
        let report = move |row: &TaskRow, error: &Error| {
            tracing::error!(task = %row.task.id, %error, "a task could not be taken up, trying again");
        };
        report(&row, &error);
        self.work.spawn(async move {
            while engine.pause().await {
                match engine.decide_or_find_queued(&row, &mut claimed).await {
                    Ok(Some(decided)) if decided.waits => return engine.requeue(decided).await,
                    Ok(Some(decided)) => return engine.resume(decided).await,
                    Ok(None) => return,
                    Err(error) => report(&row, &error),
                }
            }
        });
    }

    /// A task that was queued and had not begun, if it still waits.
    async fn find_queued(&self, row: &TaskRow) -> Result<Option<RecoveredTurn>, Error> {
        let is_queued = |core: &Core| core.row.phase == Phase::Queued;
        let live = self.find_task(&row.task.id).await?.filter(|live| is_queued(&live.core.lock()));
        let Some(live) = live else { return Ok(None) };
        if live.hosted.is_none() {
            return self.fail_unserved(&live, is_queued).await.map(|()| None);
        }
        Ok(Some(RecoveredTurn { row: row.clone(), live, begin: None, waits: true }))
    }

    /// Resumes a turn that had begun if there is a permit, else queues it.
    async fn resume(self: &Arc<Self>, decided: RecoveredTurn) {
        let Some(hosted) = decided.live.hosted.clone() else { return };
        let Some(permit) = self.try_permit(&hosted, &decided.live.task.owner) else {
            return self.requeue(decided).await;
        };
        let RecoveredTurn { live, begin, .. } = decided;
        {
            let mut core = live.core.lock();
            // A shutdown meanwhile has marked the turn for the next process.
            if !has_lost_turn(&core) || self.closing.is_cancelled() {
                return;
            }
            core.turn_fence = core.row.fence;
            core.driven = begin.is_some();
        }
        if let Some(begin) = begin {
            // The next turn must find locked what this one locks.
            let _ = self.begin_run(live, permit, begin).await;
        }
    }

    /// Queues a turn without a permit, or one that had not begun to work, before all new ones.
    async fn requeue(self: &Arc<Self>, decided: RecoveredTurn) {
        if !had_begun(&decided.row) {
            // Its row says already that it is queued.
            return self.enqueue_again(QueuePriority::Recovered, decided.live);
        }
        match self.mark_requeued(&decided.live).await {
            Ok(true) => {
                decided.live.core.lock().recovered = decided.begin;
                let priority = if decided.waits { QueuePriority::Recovered } else { QueuePriority::Started };
                self.enqueue_again(priority, decided.live);
            }
            Ok(false) => {}
            Err(error) => self.retry_later(decided.row, true, error.into()),
        }
    }
}

fn had_begun(row: &TaskRow) -> bool {
    row.state.phase != Phase::Queued
}
