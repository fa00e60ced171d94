//! Follows one stream of a remote task: tells its updates, looks when something says so, cancels, and keeps the time.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Fuse, FusedFuture};
use switchboard_a2a::{ContextId, StreamResponse, Task, TaskId};
use switchboard_client::{ClientError, TaskStream, Update};
use switchboard_engine::{AgentError, Stopped};
use switchboard_webhooks::CallbackWatch;

use super::emit::{EmitState, Emitted};
use super::followed_time::FollowedTime;
use super::outgoing::spread;
use super::saved::{Attached, Saved};
use super::turn::{Link, RemoteTurn};
use crate::metric_definitions as metric;
use crate::registry::{BreakerState, RequestOutcome};

/// How long a push notification waits for the stream to tell the same: most agents push what they stream. An event of
/// another task waits as long, so that an agent which sends many of them is not asked for each.
const PUSH_SETTLES: Duration = Duration::from_secs(1);

/// How often the time that a task was followed is saved. It is saved too when the stream ends and when the server is stopped
/// in order, so a `kill -9` loses this much of it at most.
const SAVE_EVERY: Duration = Duration::from_secs(600);

/// How following a stream has ended.
pub(super) enum Followed {
    /// The task has ended here, or waits for an answer.
    Over,
    Lost(Box<LostStream>),
}

/// A stream that broke for good.
pub(super) struct LostStream {
    pub(super) error: ClientError,
    pub(super) link: Link,
    /// What was told of the remote task.
    pub(super) told: Option<Task>,
    pub(super) had_news: bool,
    /// How long it has lasted.
    pub(super) lasted: Duration,
    /// What its end says of the agent.
    pub(super) outcome: RequestOutcome,
    /// The agent itself has ended it with an error.
    pub(super) is_given_up: bool,
}

impl LostStream {
    /// One that could not be opened.
    pub(super) fn unopened(error: ClientError, link: Link) -> Self {
        let (lasted, outcome) = (Duration::ZERO, RequestOutcome::of_error(&error));
        Self { error, link, told: None, had_news: false, lasted, outcome, is_given_up: false }
    }
}

/// Counts as an attached task while it lives.
struct AttachedGauge(metrics::Gauge);

impl AttachedGauge {
    fn new(agent: &str) -> Self {
        let gauge = metrics::gauge!(metric::REMOTE_ATTACHED, "agent" => agent.to_owned());
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for AttachedGauge {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

impl RemoteTurn<'_> {
    /// What it waits in for hours is the `select!` alone. What it does with an update takes more space and little time, so
    /// it is pinned on the heap meanwhile, or every followed task would keep room for it.
    pub(super) async fn follow(
        &self,
        mut stream: Box<TaskStream>,
        mut link: Link,
        emit_state: &mut EmitState,
    ) -> Result<Followed, AgentError> {
        let clock = &self.parts.clock;
        let watch = self.parts.callbacks.as_ref().map(|callbacks| callbacks.watch(self.task.id()));
        let (mut gauge, mut at_shutdown) = (None, None);
        let before = match &link {
            Link::Attached(attached) => attached.spent_ms,
            Link::Sending(sending) => sending.answers.as_ref().map_or(0, |answered| answered.spent_ms),
        };
        let (before, now) = (Duration::from_millis(before), clock.monotonic());
        let spent = FollowedTime { before, since: now };
        let left = self.parts.settings.deadline.map(|deadline| deadline.saturating_sub(spent.before));
        let mut deadline = sleep_or_never(left.map(|left| clock.sleep(left)));
        let mut poll = self.poll_timer(watch.is_some());
        let mut save = clock.sleep(SAVE_EVERY).fuse();
        let mut cancel: Fuse<BoxFuture<'_, ()>> = Fuse::terminated();
        let mut push: Fuse<BoxFuture<'_, ()>> = Fuse::terminated();
        let mut stray: Fuse<BoxFuture<'static, ()>> = Fuse::terminated();
        let (mut is_canceled, mut is_canceling, mut had_news) = (false, false, false);
        loop {
            if let Link::Attached(attached) = &link {
                gauge.get_or_insert_with(|| AttachedGauge::new(self.parts.name.as_str()));
                at_shutdown.get_or_insert_with(|| self.save_time_at_shutdown(attached, spent));
                if is_canceled && !is_canceling {
                    is_canceling = true;
                    let (here, there) = (self.task.id().clone(), attached.task.clone());
                    cancel = self.parts.cancel_remote(self.context.clone(), here, there).boxed().fuse();
                }
            }
            let update = tokio::select! {
                update = stream.next() => update,
                () = pushed(watch.as_ref()) => {
                    if push.is_terminated() {
                        push = clock.sleep(PUSH_SETTLES).boxed().fuse();
                    }
                    continue;
                }
                () = &mut push => {
                    self.look(&mut stream, "push");
                    continue;
                }
                () = &mut stray => {
                    self.look(&mut stream, "stray");
                    continue;
                }
                () = &mut poll => {
                    self.look(&mut stream, "poll");
                    poll = self.poll_timer(watch.is_some());
                    continue;
                }
                () = &mut save => {
                    Box::pin(self.save_time_now(&mut link, &spent)).await?;
                    save = clock.sleep(SAVE_EVERY).fuse();
                    continue;
                }
                () = &mut cancel => {
                    self.look(&mut stream, "cancel");
                    continue;
                }
                () = &mut deadline => {
                    Box::pin(self.save_time_now(&mut link, &spent)).await?;
                    return Ok(Box::pin(self.give_up_late()).await.map(|()| Followed::Over)?);
                }
                () = self.task.canceled(), if !is_canceled => {
                    if !self.task.is_over() {
                        return Err(Stopped::Lost.into());
                    }
                    is_canceled = true;
                    continue;
                }
            };
            let update = match update {
                Ok(Some(update)) => update,
                // The stream has ended with what was told, and the task here has not: it is where the last stop was.
                Ok(None) => {
                    let error = ClientError::Timeout {
                        origin: self.parts.name.to_string(),
                        after: Duration::ZERO,
                        task: stream.task_id(),
                    };
                    Box::pin(self.save_time_now(&mut link, &spent)).await?;
                    let lasted = clock.monotonic().saturating_sub(now);
                    // The time-out only has it waited for: the agent has answered.
                    let (outcome, is_given_up) = (RequestOutcome::Answered, false);
                    let lost = LostStream { error, link, told: None, had_news, lasted, outcome, is_given_up };
                    return Ok(Followed::Lost(Box::new(lost)));
                }
                Err(error) => {
                    Box::pin(self.save_time_now(&mut link, &spent)).await?;
                    let told = stream.task().cloned();
                    let lasted = clock.monotonic().saturating_sub(now);
                    let (outcome, is_given_up) = (RequestOutcome::of_error(&error), stream.is_given_up());
                    let lost = LostStream { error, link, told, had_news, lasted, outcome, is_given_up };
                    return Ok(Followed::Lost(Box::new(lost)));
                }
            };
            if let (Update::Event(event), Link::Attached(attached)) = (&update, &link)
                && is_of_another_task(event, &attached.task)
            {
                // It may be one of this task under a wrong id.
                tracing::debug!(task = %self.task.id(), "a remote agent has sent an event of another task");
                if stray.is_terminated() {
                    stray = clock.sleep(PUSH_SETTLES).fuse();
                }
                continue;
            }
            if matches!(update, Update::Event(_)) {
                had_news = true;
                push = Fuse::terminated();
            }
            if let Link::Sending(sending) = &link {
                if let Update::Event(event) = &update
                    && let StreamResponse::Message(message) = &**event
                    && stream.task_id().is_none()
                {
                    Box::pin(self.emit_reply(message.clone())).await?;
                    return Ok(Followed::Over);
                }
                let Some((task, context)) = task_of(&stream) else { continue };
                let attached = Box::new(sending.attach(task, context));
                Box::pin(self.attach(&attached)).await?;
                link = Link::Attached(attached);
            }
            let Link::Attached(attached) = &mut link else { continue };
            attached.spent_ms = spent.millis(clock.monotonic());
            if Box::pin(self.emit(emit_state, attached, update)).await? == Emitted::Over {
                return Ok(Followed::Over);
            }
        }
    }

    /// The outcome of a look is the stream's own, so none is the trial of a breaker that is not closed.
    fn look(&self, stream: &mut TaskStream, why: &'static str) {
        if self.parts.breaker.state() != BreakerState::Closed {
            return;
        }
        let agent = self.parts.name.to_string();
        metrics::counter!(metric::REMOTE_LOOKS, "agent" => agent, "why" => why).increment(1);
        stream.look();
    }

    /// Beside push notifications, of which one may be lost.
    fn poll_timer(&self, is_pushed: bool) -> Fuse<BoxFuture<'static, ()>> {
        let wait = self.parts.settings.poll.mul_f64(spread());
        sleep_or_never(is_pushed.then(|| self.parts.clock.sleep(wait)))
    }

    async fn save_time_now(&self, link: &mut Link, spent: &FollowedTime) -> Result<(), Stopped> {
        let now = self.parts.clock.monotonic();
        let Link::Attached(attached) = link else { return Ok(()) };
        attached.spent_ms = spent.millis(now);
        self.task.save(&Saved::Attached(Attached::clone(attached))).await
    }
}

/// The task that a stream is about, once it has said which one.
fn task_of(stream: &TaskStream) -> Option<(TaskId, ContextId)> {
    let context = stream.task().map(|task| task.context_id.clone()).unwrap_or_default();
    stream.task_id().map(|task| (task, context))
}

/// Whether an event names another task than the one that is followed. Some agents leave ids out.
fn is_of_another_task(event: &StreamResponse, followed: &TaskId) -> bool {
    let named = match event {
        StreamResponse::Task(task) => Some(&task.id),
        StreamResponse::StatusUpdate(update) => Some(&update.task_id),
        StreamResponse::ArtifactUpdate(update) => Some(&update.task_id),
        StreamResponse::Message(message) => message.task_id.as_ref(),
    };
    let is_known = |id: &&TaskId| !id.as_str().is_empty();
    named.filter(is_known).is_some_and(|named| is_known(&followed) && named != followed)
}

fn sleep_or_never(sleep: Option<BoxFuture<'static, ()>>) -> Fuse<BoxFuture<'static, ()>> {
    sleep.map_or_else(Fuse::terminated, FutureExt::fuse)
}

async fn pushed(watch: Option<&CallbackWatch>) {
    match watch {
        Some(watch) => watch.notified().await,
        None => std::future::pending().await,
    }
}
