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
use crate::live_task::{Core, LiveTask};
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

/// A task that waits for its turn.
enum Waiting {
    /// As it did before.
    Still(Arc<LiveTask>),
    /// Because its agent says that it had not begun to work.
    Again(Box<RecoveredTurn>),
}

impl EngineState {
    /// Reads the unfinished tasks of an earlier process and recovers them in the background.
    pub(crate) async fn start_recovery(self: &Arc<Self>) {
        let error = match self.unfinished_tasks().await {
            Ok(rows) => return self.recover_all(rows),
            Err(error) => error,
        };
        tracing::error!(%error, "unfinished tasks could not be read, trying again");
        let engine = self.clone();
        self.work.spawn(async move {
            while engine.pause().await {
                match engine.unfinished_tasks().await {
                    Ok(rows) => return engine.recover_all(rows),
                    Err(error) => tracing::error!(%error, "unfinished tasks could not be read, trying again"),
                }
            }
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
                Some(decided) if decided.waits => waiting.push((decided.row.key, Waiting::Again(Box::new(decided)))),
                Some(decided) => going_on.push(decided),
                None => {}
            }
        }
        for decided in going_on {
            self.resume(decided).await;
        }
        let mut still = stream::iter(queued).map(|row| self.clone().find_queued_or_retry(row)).buffered(at_once);
        while let Some(found) = still.next().await {
            waiting.extend(found.map(|(key, live)| (key, Waiting::Still(live))));
        }
        waiting.sort_by_key(|(key, _)| *key);
        for (_, waits) in waiting {
            match waits {
                Waiting::Still(live) => self.enqueue_again(QueuePriority::Recovered, live),
                Waiting::Again(decided) => self.requeue(*decided).await,
            }
        }
    }

    async fn decide_or_retry(self: Arc<Self>, row: TaskRow) -> Option<RecoveredTurn> {
        let mut claimed = false;
        match self.decide(&row, &mut claimed).await {
            Ok(decided) => decided,
            Err(error) => {
                self.retry_later(row, claimed, error);
                None
            }
        }
    }

    async fn find_queued_or_retry(self: Arc<Self>, row: TaskRow) -> Option<(TaskKey, Arc<LiveTask>)> {
        match self.find_queued(&row).await {
            Ok(live) => live.map(|live| (row.key, live)),
            Err(error) => {
                self.retry_later(row, false, error);
                None
            }
        }
    }

    /// Retries the recovery of one task until the store works.
    fn retry_later(self: &Arc<Self>, row: TaskRow, mut claimed: bool, error: Error) {
        let engine = self.clone();
        let tell = move |row: &TaskRow, error: &Error| {
            tracing::error!(task = %row.task.id, %error, "a task could not be taken up, trying again");
        };
        tell(&row, &error);
        self.work.spawn(async move {
            while engine.pause().await {
                match engine.recover_one(&row, &mut claimed).await {
                    Ok(()) => return,
                    Err(error) => tell(&row, &error),
                }
            }
        });
    }

    async fn recover_one(self: &Arc<Self>, row: &TaskRow, claimed: &mut bool) -> Result<(), Error> {
        if !had_begun(row) {
            self.find_queued(row)
                .await?
                .into_iter()
                .for_each(|live| self.enqueue_again(QueuePriority::Recovered, live));
            return Ok(());
        }
        match self.decide(row, claimed).await? {
            Some(decided) if decided.waits => self.requeue(decided).await,
            Some(decided) => self.resume(decided).await,
            None => {}
        }
        Ok(())
    }

    /// A task that was queued and had not begun, if it still waits.
    async fn find_queued(&self, row: &TaskRow) -> Result<Option<Arc<LiveTask>>, Error> {
        let is_queued = |core: &Core| core.row.phase == Phase::Queued;
        let live = self.find_task(&row.task.id).await?.filter(|live| is_queued(&live.core.lock()));
        let Some(unserved) = live.as_ref().filter(|live| live.hosted.is_none()) else { return Ok(live) };
        self.fail_unserved(unserved, is_queued).await.map(|()| None)
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
        match self.mark_requeued(&decided.live).await {
            Ok(true) => {
                decided.live.core.lock().recovered = decided.begin;
                let rank = if decided.waits { QueuePriority::Recovered } else { QueuePriority::Started };
                self.enqueue_again(rank, decided.live);
            }
            Ok(false) => {}
            Err(error) => self.retry_later(decided.row, true, error.into()),
        }
    }
}

fn had_begun(row: &TaskRow) -> bool {
    row.state.phase != Phase::Queued
}
