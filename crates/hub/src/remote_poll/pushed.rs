//! Tasks that push notifications were about. However many come, a task is looked at once at a time and once a second at
//! most, and what cannot be held is left to the poll.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use switchboard_a2a::TaskId;
use switchboard_engine::clock::Clock;
use tokio::sync::Notify;

/// Tasks looked at at the same time.
const AT_ONCE: usize = 32;
/// Tasks that are held; a notification is small, so anybody with a token could send many.
const HELD: usize = 10_000;
/// Between two looks at one task.
const PAUSE: Duration = Duration::from_secs(1);

/// Tasks that are to be looked at.
#[derive(Default)]
pub(crate) struct PushedTasks {
    state: Mutex<State>,
    added: Notify,
}

#[derive(Default)]
struct State {
    queue: VecDeque<TaskId>,
    stages: HashMap<TaskId, Stage>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Queued,
    /// It is being looked at, or was a moment ago.
    Looking,
    /// The same, and there was news since.
    Again,
}

impl PushedTasks {
    /// There is news of a task.
    pub(crate) fn add(&self, task: &TaskId) {
        let mut state = self.state.lock();
        if let Some(stage) = state.stages.get_mut(task) {
            if *stage == Stage::Looking {
                *stage = Stage::Again;
            }
            return;
        }
        if state.stages.len() >= HELD {
            return;
        }
        state.stages.insert(task.clone(), Stage::Queued);
        state.queue.push_back(task.clone());
        drop(state);
        self.added.notify_one();
    }

    /// Looks at tasks as they are added; never ends.
    pub(crate) async fn run(&self, clock: Arc<dyn Clock>, look: impl Fn(TaskId) -> BoxFuture<'static, ()>) {
        let mut looking = FuturesUnordered::new();
        loop {
            while looking.len() < AT_ONCE
                && let Some(task) = self.next()
            {
                let looks = look(task.clone());
                looking.push(self.look_at(task, looks, Arc::clone(&clock)));
            }
            let has_room = looking.len() < AT_ONCE;
            tokio::select! {
                Some(()) = looking.next() => {}
                () = self.added.notified(), if has_room => {}
            }
        }
    }

    async fn look_at(&self, task: TaskId, looks: BoxFuture<'static, ()>, clock: Arc<dyn Clock>) {
        looks.await;
        clock.sleep(PAUSE).await;
        self.looked(task);
    }

    fn next(&self) -> Option<TaskId> {
        let mut state = self.state.lock();
        let task = state.queue.pop_front()?;
        state.stages.insert(task.clone(), Stage::Looking);
        Some(task)
    }

    fn looked(&self, task: TaskId) {
        let mut state = self.state.lock();
        if state.stages.get(&task) == Some(&Stage::Again) {
            state.stages.insert(task.clone(), Stage::Queued);
            state.queue.push_back(task);
        } else {
            state.stages.remove(&task);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use switchboard_a2a::Timestamp;
    use switchboard_engine::clock::SimulatedClock;

    use super::*;

    #[tokio::test]
    async fn a_task_with_many_notifications_is_looked_at_once_and_then_once_more() {
        let (clock, pushed) = (SimulatedClock::at(Timestamp(0)), Arc::new(PushedTasks::default()));
        let (task, looks) = (TaskId::from("a"), Arc::new(AtomicUsize::new(0)));
        let (counted, again) = (Arc::clone(&looks), Arc::clone(&pushed));
        let look = move |looked: TaskId| -> BoxFuture<'static, ()> {
            // These come while it is looked at.
            if counted.fetch_add(1, Ordering::SeqCst) == 0 {
                (0..100).for_each(|_| again.add(&looked));
            }
            Box::pin(std::future::ready(()))
        };
        (0..100).for_each(|_| pushed.add(&task));
        let settled = async {
            for expected in [1, 2] {
                while looks.load(Ordering::SeqCst) < expected || clock.sleepers() == 0 {
                    tokio::task::yield_now().await;
                }
                assert_eq!(looks.load(Ordering::SeqCst), expected);
                clock.advance(PAUSE);
            }
            while !pushed.state.lock().stages.is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = pushed.run(Arc::new(clock.clone()), look) => unreachable!("it never ends"),
            done = tokio::time::timeout(Duration::from_secs(60), settled) => done.unwrap(),
        }
        assert_eq!(looks.load(Ordering::SeqCst), 2);
        (0..2 * HELD).for_each(|number| pushed.add(&TaskId::from(number.to_string())));
        assert_eq!(pushed.state.lock().stages.len(), HELD, "what is held has a limit");
    }
}
