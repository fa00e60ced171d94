//! A turn that begins in the future of its sender, instead of in a task of its own.
//!
//! An agent that finishes when it is first polled is done once its only append is committed, which is what its sender
//! waits for. A task of its own would be spawned and woken only to wake the sender. So the sender polls the turn itself
//! until its message is committed, and one that waits for the answer until that is there.
//!
//! Cancellation safety: a caller may disconnect, which drops the sender's future at any of its awaits, and the turn must go
//! on: an append may be under way, and memory has to follow it. The turn is never dropped with the sender. It is boxed,
//! and whatever is left of it is spawned when this is dropped, before or after the commit; the task that goes on with it
//! polls it where the sender stopped. A shutdown waits for it in both.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// A turn that its sender polls.
pub(crate) struct InlineTurn {
    /// Absent once it is over.
    turn: Option<BoxFuture<'static, ()>>,
    work: TaskTracker,
    _counted: TaskTrackerToken,
    /// Where it goes on; the sender may be dropped by a thread that is in no runtime.
    runtime: Handle,
}

impl InlineTurn {
    pub(crate) fn new(work: &TaskTracker, turn: impl Future<Output = ()> + Send + 'static) -> Self {
        let (work, counted) = (work.clone(), work.token());
        Self { turn: Some(Box::pin(turn)), work, _counted: counted, runtime: Handle::current() }
    }

    /// Goes on with the turn until it is over or `is_enough`.
    pub(crate) async fn run_until(&mut self, mut is_enough: impl FnMut() -> bool) {
        poll_fn(|context| {
            self.poll_once(context);
            if self.turn.is_none() || is_enough() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Goes on with the turn, and beside it with what waits for something of it, until that is there.
    pub(crate) async fn run_beside<T>(&mut self, waiting: impl Future<Output = T>) -> T {
        let mut waiting = pin!(waiting);
        poll_fn(|context| {
            self.poll_once(context);
            waiting.as_mut().poll(context)
        })
        .await
    }

    fn poll_once(&mut self, context: &mut Context<'_>) {
        if let Some(turn) = &mut self.turn
            && turn.poll_unpin(context).is_ready()
        {
            self.turn = None;
        }
    }
}

impl Drop for InlineTurn {
    fn drop(&mut self) {
        if let Some(turn) = self.turn.take() {
            self.work.spawn_on(turn, &self.runtime);
        }
    }
}
