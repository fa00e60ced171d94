//! How a turn starts: at once, in the agent that still waits for its answer, or from the queue.

use std::sync::Arc;

use futures_util::future::join_all;
use switchboard_admission::CounterPermit;
use tokio::sync::oneshot;

use crate::admission::{Permit, StartableTurn};
use crate::append::PendingAppend;
use crate::engine::EngineState;
use crate::live_task::{Claimed, Core, LiveTask};
use crate::metric_definitions as metric;
use crate::queue::QueuePriority;
use crate::store::{Holder, Phase, RowState, SideWrites, StoreError};
use crate::turn::{RETRY, TurnInput, drive};

impl EngineState {
    /// Lets a claimed turn go on: in the agent that still waits, or in a new run. The receiver resolves when that has
    /// begun.
    pub(crate) fn wake_turn(self: &Arc<Self>, live: Arc<LiveTask>, permit: Permit) -> Option<oneshot::Receiver<()>> {
        let begin = {
            let mut core = live.core.lock();
            if core.is_done() || core.holder != Holder::This {
                // Canceled since, or interrupted and claimed by another node.
                core.turn.undo_claim();
                return None;
            }
            let fence = core.row.fence;
            match core.turn.claimed(fence, permit) {
                Ok(Claimed::Resumes) => None,
                Ok(Claimed::Begins(permit, recovered)) => {
                    let begin = recovered.map(|input| *input).or_else(|| TurnInput::current(&core));
                    if begin.is_none() {
                        core.turn.leave();
                    }
                    begin.map(|begin| (permit, begin))
                }
                // The server stops, and has marked the turn for the next process.
                Err(_) => None,
            }
        };
        live.wake();
        let (permit, begin) = begin?;
        Some(self.begin_run(live, permit, begin))
    }

    /// Begins a run. The receiver resolves when its agent waits for the first time or is gone.
    pub(crate) fn begin_run(
        self: &Arc<Self>,
        live: Arc<LiveTask>,
        permit: Permit,
        begin: TurnInput,
    ) -> oneshot::Receiver<()> {
        let (begun, has_begun) = oneshot::channel();
        self.work.spawn(drive(self.clone(), live, permit, begin.notifying(begun), SideWrites::default()));
        has_begun
    }

    /// Queues a task that was admitted before, without regard to the queue's limit.
    pub(crate) fn enqueue_again(self: &Arc<Self>, priority: QueuePriority, live: Arc<LiveTask>) {
        self.enqueue(priority, live, self.admission.queued.acquire());
    }

    pub(crate) fn enqueue(self: &Arc<Self>, priority: QueuePriority, live: Arc<LiveTask>, slot: CounterPermit) {
        self.admission.enqueue(priority, live.clone(), self.clock.now(), slot);
        if live.core.lock().is_done() {
            // Canceled between the log and the queue.
            self.admission.withdraw(&live);
        }
        // A permit may have become free between the refusal and now.
        self.start_queued();
    }

    /// Queued turns with permits: they are claimed in the log together, then run in their order.
    pub(crate) fn spawn_queued(self: &Arc<Self>, turns: Vec<StartableTurn>) {
        let engine = self.clone();
        self.work.spawn(async move {
            let claims = turns.into_iter().filter_map(|StartableTurn { live, permit, queued_at }| {
                // A turn that had released its permit goes on; there is nothing to claim.
                let permit = engine.resume_released(&live, permit)?;
                let engine = engine.clone();
                Some(async move { (engine.claim_queued(&live).await, StartableTurn { live, permit, queued_at }) })
            });
            for (claimed, turn) in join_all(claims).await {
                // One after the other: the next turn must find locked what this one locks.
                if let Some(has_begun) = engine.start_claimed(claimed, turn) {
                    let _ = has_begun.await;
                }
            }
        });
    }

    async fn claim_queued(&self, live: &LiveTask) -> Result<bool, StoreError> {
        let mut claims = false;
        let decide = |core: &mut Core| {
            if std::mem::take(&mut claims) {
                core.turn.undo_claim();
            }
            // After a shutdown has marked its turns it stays in the queue, for the next process.
            if !core.row.phase.is_queued() || self.interrupting.is_cancelled() {
                return None;
            }
            core.turn.begin_claim().ok()?;
            claims = true;
            let fence = core.row.fence.next();
            let row = RowState { phase: Phase::Running, fence, expires_at: None, ..core.row.clone() };
            Some(PendingAppend::claim(Vec::new(), row))
        };
        live.inbox_if(self, decide).await
    }

    fn start_claimed(
        self: &Arc<Self>,
        claimed: Result<bool, StoreError>,
        StartableTurn { live, permit, queued_at }: StartableTurn,
    ) -> Option<oneshot::Receiver<()>> {
        match claimed {
            Ok(true) => {
                let waited_ms = self.clock.now().0 - queued_at.0;
                metrics::histogram!(metric::QUEUE_WAIT).record(waited_ms as f64 / 1_000.0);
                self.wake_turn(live, permit)
            }
            Ok(false) => None,
            Err(error) => {
                let priority = {
                    let mut core = live.core.lock();
                    core.turn.undo_claim();
                    if core.turn.is_requeued() { QueuePriority::Started } else { QueuePriority::Recovered }
                };
                tracing::warn!(task = %live.task.id, %error, "a queued task could not be claimed, trying again");
                drop(permit);
                let engine = self.clone();
                self.work.spawn(async move {
                    engine.clock.sleep(RETRY).await;
                    engine.enqueue_again(priority, live);
                });
                None
            }
        }
    }
}
