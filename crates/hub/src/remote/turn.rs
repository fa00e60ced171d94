//! One turn of a remote agent: sends its message if that was not done before, and follows the remote task, over as many
//! streams as it takes, until the task ends, waits for an answer, or is given up.

use parking_lot::Mutex;
use serde_json::json;
use switchboard_a2a::{ContextId, Message, Role, Task, TaskId, TaskState};
use switchboard_client::{CallContext, ClientError, TaskStream};
use switchboard_engine::{AgentError, DelegationChain, Stopped, TaskHandle, Turn};

use super::RemoteParts;
use super::emit::EmitState;
use super::find::Found;
use super::follow::{Followed, LostStream};
use super::outage::{OutageBackoff, is_final, is_not_sent, is_outage, is_passing, is_unclear};
use super::outgoing::{self, CallOrigin};
use super::plan::{Plan, plan};
use super::prepare::unreachable_for_now;
use super::saved::{Attached, Saved, Sending};
use super::settings::Resend;
use super::translate;
use crate::metric_definitions as metric;
use crate::registry::{BreakerPermit, RequestOutcome, RequestSource};

/// How often a message may get an answer that is neither a task nor a refusal: an agent that breaks down over a message
/// does so whenever it comes.
const MOST_UNCLEAR: u32 = 3;

/// A stream, and the permit that it was opened with: its loss is recorded too.
type OpenStream<'a> = (Box<TaskStream>, BreakerPermit<'a>);

pub(super) struct RemoteTurn<'a> {
    pub(super) parts: &'a RemoteParts,
    pub(super) turn: Turn,
    pub(super) task: TaskHandle,
    pub(super) context: CallContext,
    pub(super) origin: CallOrigin,
    /// Of what the task calls, once it could be read.
    pub(super) chain: Option<DelegationChain>,
    /// The conversation there as it was last read or noted by this turn.
    pub(super) noted: Mutex<Option<ContextId>>,
}

/// What is known of the remote task. It is moved often, and is there for as long as a stream is.
pub(super) enum Link {
    Sending(Box<Sending>),
    Attached(Box<Attached>),
}

/// What opens the next stream.
enum Next {
    /// Nothing was sent; the message answers this task, if any.
    Prepare(Option<Attached>),
    Send(Box<Sending>),
    Find(Box<Sending>),
    Resume(Box<Attached>, Box<Task>),
}

/// What has come of it.
enum Step<'a> {
    Next(Next),
    Follow(OpenStream<'a>, Link),
    /// The task has ended here, or waits for an answer.
    Over,
}

/// How far a turn has come.
struct Progress {
    /// The waits for an agent before it has the message, and after.
    connecting: OutageBackoff,
    lost: OutageBackoff,
    /// The message has perhaps arrived.
    is_perhaps_sent: bool,
    is_repeated: bool,
    /// The server was stopped while the message was sent.
    was_stopped: bool,
    /// The last answer that leaves open whether the agent has the message, and how many of them no waiting will change.
    unclear: Option<ClientError>,
    unclear_answers: u32,
    /// A cancellation has ended a wait in which no remote task was known: it can be passed on only once that is found.
    has_noticed_cancel: bool,
    /// The remote server has heard that the task is canceled.
    has_passed_cancel: bool,
    /// The remote tasks of earlier turns.
    before: Vec<TaskId>,
    emit_state: EmitState,
}

impl<'a> RemoteTurn<'a> {
    pub(super) fn new(parts: &'a RemoteParts, turn: Turn, task: TaskHandle) -> Self {
        let origin = CallOrigin::of(task.id(), None);
        // The context of its calls follows from the chain, which is read first.
        Self { parts, turn, task, context: CallContext::default(), origin, chain: None, noted: Mutex::default() }
    }

    /// All that is done before a stream and after it takes more space than following one and little time, so it is pinned on
    /// the heap meanwhile: a task is followed for hours, and many at once.
    pub(super) async fn run(mut self: Box<Self>) -> Result<(), AgentError> {
        let Some((mut next, mut progress)) = Box::pin(self.begin()).await? else { return Ok(()) };
        loop {
            if self.task.is_canceled() && !self.task.is_over() {
                return Err(Stopped::Lost.into());
            }
            let ((stream, permit), link) = match Box::pin(self.step(next, &mut progress)).await? {
                Step::Follow(opened, link) => (opened, link),
                Step::Next(further) => {
                    next = further;
                    continue;
                }
                Step::Over => return Ok(()),
            };
            let lost = match self.follow(stream, link, &mut progress.emit_state).await? {
                Followed::Lost(lost) => lost,
                Followed::Over => return Ok(()),
            };
            progress.lost.held(lost.lasted, lost.had_news);
            permit.record(RequestSource::Task(self.task.id()), lost.outcome);
            drop(permit);
            next = match Box::pin(self.after_loss(*lost, &mut progress)).await? {
                Some(next) => next,
                None => return Ok(()),
            };
        }
    }

    /// What the turn does first, by what was saved. Nothing if the task has ended over it.
    async fn begin(&mut self) -> Result<Option<(Next, Progress)>, AgentError> {
        match self.task.delegation_chain().await {
            Ok(chain) => {
                self.origin = CallOrigin::of(self.task.id(), Some(&chain));
                self.chain = Some(chain);
            }
            Err(error) => tracing::warn!(task = %self.task.id(), %error, "the tasks above a task cannot be read"),
        }
        self.context = outgoing::call_context(self.task.id(), &self.turn, &self.origin);
        let saved = self.turn.saved.as_ref().and_then(Saved::read);
        let before = saved.as_ref().map(Saved::remote_tasks).unwrap_or_default();
        let plan = plan(saved, self.turn.seq.0, &self.turn.cause);
        if self.parts.is_elsewhere(plan.url()) {
            self.give_up_moved().await?;
            return Ok(None);
        }
        let next = match plan {
            Plan::Follow(attached) => self.resume(Box::new(attached)),
            Plan::Find(sending) if sending.keyed => Next::Send(Box::new(sending)),
            Plan::Find(sending) => Next::Find(Box::new(sending)),
            Plan::Send { answers } => Next::Prepare(answers),
        };
        if !matches!(next, Next::Prepare(_)) {
            // The card is not asked for first.
            self.context.extensions = outgoing::extensions(&self.parts.manifest.extensions, &self.turn);
        }
        let is_perhaps_sent = matches!(next, Next::Send(_) | Next::Find(_));
        let progress = Progress {
            connecting: OutageBackoff::new(self.parts.settings.connect_within),
            lost: OutageBackoff::new(self.parts.settings.lost_after),
            is_perhaps_sent,
            is_repeated: is_perhaps_sent,
            was_stopped: is_perhaps_sent,
            unclear: None,
            unclear_answers: 0,
            has_noticed_cancel: false,
            has_passed_cancel: false,
            before,
            emit_state: EmitState::default(),
        };
        Ok(Some((next, progress)))
    }

    fn resume(&self, attached: Box<Attached>) -> Next {
        let told = translate::told(self.task.snapshot(), &attached);
        Next::Resume(attached, Box::new(told))
    }

    /// Does what comes next, up to an open stream.
    async fn step(&mut self, next: Next, progress: &mut Progress) -> Result<Step<'a>, AgentError> {
        let next = match next {
            Next::Prepare(answers) => {
                let prepared = self.prepare(answers, &progress.before, &mut progress.connecting).await?;
                prepared.map(|sending| Next::Send(Box::new(sending)))
            }
            Next::Find(sending) => self.find_or_wait(sending, progress).await?,
            Next::Send(sending) => match self.send(&sending).await? {
                Ok(opened) => {
                    self.count_send(if progress.is_repeated { "repeated" } else { "sent" });
                    // It is known only once the agent has said which task has it.
                    progress.is_perhaps_sent = true;
                    return Ok(Step::Follow(opened, Link::Sending(sending)));
                }
                Err(error) => {
                    self.count_send("failed");
                    self.after_failed_send(sending, &error, progress).await?
                }
            },
            Next::Resume(attached, told) => {
                progress.emit_state.is_named |= translate::names(&self.task.snapshot(), &attached);
                match self.reopen(&attached, *told).await {
                    Ok(opened) => return Ok(Step::Follow(opened, Link::Attached(attached))),
                    Err(error) => {
                        let lost = LostStream::unopened(error, Link::Attached(attached));
                        self.after_loss(lost, progress).await?
                    }
                }
            }
        };
        Ok(next.map_or(Step::Over, Step::Next))
    }

    /// What comes next after a stream; nothing if the task has ended over it.
    async fn after_loss(&self, lost: LostStream, progress: &mut Progress) -> Result<Option<Next>, AgentError> {
        let LostStream { error, link, told, is_given_up, .. } = lost;
        let link = match link {
            // Some agents refuse, or break down, on the stream that they have opened.
            Link::Sending(sending) if is_unclear(&error) => {
                return self.after_unclear_answer(sending, &error, progress).await;
            }
            Link::Sending(sending) if is_given_up && !is_outage(&error) => {
                return self.after_refusal(sending, &error).await;
            }
            link => link,
        };
        let is_over = match &link {
            Link::Sending(_) => !is_outage(&error),
            Link::Attached(_) => is_final(&error),
        };
        if is_over || is_given_up {
            self.give_up_on(&link, &error, &mut progress.emit_state).await?;
            return Ok(None);
        }
        let remote = match &link {
            Link::Sending(_) => None,
            Link::Attached(attached) => Some(&attached.task),
        };
        if !self.wait(&error, remote, progress).await? {
            return Ok(None);
        }
        Ok(Some(match link {
            Link::Sending(sending) if sending.keyed => Next::Send(sending),
            Link::Sending(sending) => Next::Find(sending),
            Link::Attached(attached) => match told {
                Some(told) => Next::Resume(attached, Box::new(told)),
                None => self.resume(attached),
            },
        }))
    }

    async fn send(&self, sending: &Sending) -> Result<Result<OpenStream<'a>, ClientError>, AgentError> {
        let request = self.request(sending).await?;
        Ok(match self.allowed() {
            Ok(permit) => {
                let opened = self.called(&permit, self.parts.client.stream(&self.context, request).await);
                opened.map(|stream| (Box::new(stream), permit))
            }
            Err(error) => Err(error),
        })
    }

    /// Follows a remote task of which this was told.
    async fn reopen(&self, attached: &Attached, told: Task) -> Result<OpenStream<'a>, ClientError> {
        let permit = self.allowed()?;
        let resumed = self.parts.client.resume(&self.context, attached.task.clone(), told).await;
        let stream = self.called(&permit, resumed)?;
        Ok((Box::new(stream), permit))
    }

    /// What comes next after a send that has failed. Nothing if the task has ended over it.
    async fn after_failed_send(
        &self,
        sending: Box<Sending>,
        error: &ClientError,
        progress: &mut Progress,
    ) -> Result<Option<Next>, AgentError> {
        if is_unclear(error) {
            return self.after_unclear_answer(sending, error, progress).await;
        }
        if !is_outage(error) {
            return self.after_refusal(sending, error).await;
        }
        if is_not_sent(error) && !progress.is_perhaps_sent {
            if self.task.is_canceled() {
                return Err(Stopped::Canceled.into());
            }
            // Nothing is owed to the remote server while it is waited for.
            self.task.save(&Saved::Unsent(Sending::clone(&sending))).await?;
            progress.connecting.begin(self.parts.clock.monotonic(), error);
            return Ok(Some(Next::Prepare(sending.answers)));
        }
        progress.is_perhaps_sent = true;
        progress.is_repeated = true;
        if !self.wait(error, None, progress).await? {
            return Ok(None);
        }
        // If this one has not arrived, it was allowed to be sent again, and still is.
        Ok(Some(match sending.keyed || is_not_sent(error) {
            true => Next::Send(sending),
            false => Next::Find(sending),
        }))
    }

    /// The agent has broken down over the message, or what has answered is no agent: the message may have arrived. It is
    /// looked for, or sent again under its key, as after an outage, but not often where that brings the same again.
    async fn after_unclear_answer(
        &self,
        sending: Box<Sending>,
        error: &ClientError,
        progress: &mut Progress,
    ) -> Result<Option<Next>, AgentError> {
        progress.is_perhaps_sent = true;
        progress.is_repeated = true;
        progress.unclear = Some(error.clone());
        progress.unclear_answers += u32::from(!is_passing(error));
        if progress.unclear_answers >= MOST_UNCLEAR {
            return self.after_unknown(sending, progress).await;
        }
        if !self.wait(error, None, progress).await? {
            return Ok(None);
        }
        Ok(Some(if sending.keyed { Next::Send(sending) } else { Next::Find(sending) }))
    }

    /// It cannot be found out whether the message has arrived. A task whose agent broke down over an answer to it is
    /// followed again: it has gone on, or still asks, and either is told.
    async fn after_unknown(&self, sending: Box<Sending>, progress: &Progress) -> Result<Option<Next>, AgentError> {
        self.count_send("unknown");
        let unclear = progress.unclear.as_ref();
        if let Some(error) = unclear.filter(|error| sending.answers.is_some() && error.is_breakdown()) {
            return self.after_refusal(sending, error).await;
        }
        self.give_up_unknown(progress.was_stopped, unclear).await?;
        Ok(None)
    }

    /// A task that does not take an answer has ended there, or was answered by another client: it is followed again.
    async fn after_refusal(&self, sending: Box<Sending>, error: &ClientError) -> Result<Option<Next>, AgentError> {
        let (ClientError::Agent(_), Some(answered)) = (error, &sending.answers) else {
            self.give_up_unsent(error).await?;
            return Ok(None);
        };
        let attached = Box::new(sending.attach(answered.task.clone(), answered.context.clone()));
        self.attach(&attached).await?;
        let what = if is_unclear(error) { "neither taken nor refused" } else { "not taken" };
        let text = format!("{} has {what} the answer: {}", self.parts.name, self.failure(error));
        self.task.say(TaskState::Working, Some(Message::text(Role::Agent, text)), None).await?;
        Ok(Some(self.resume(attached)))
    }

    async fn find_or_wait(&self, sending: Box<Sending>, progress: &mut Progress) -> Result<Option<Next>, AgentError> {
        let found = match self.allowed() {
            Ok(permit) => self.find(&sending, &permit).await,
            Err(error) => Err(error),
        };
        match found {
            Ok(Found::Arrived(attached)) => {
                self.count_send("adopted");
                self.attach(&attached).await?;
                Ok(Some(self.resume(Box::new(attached))))
            }
            Ok(Found::Unknown) if self.parts.settings.resend == Resend::Safe => {
                self.after_unknown(sending, progress).await
            }
            Ok(Found::NotSent | Found::Unknown) => {
                progress.is_repeated = true;
                Ok(Some(Next::Send(sending)))
            }
            // Whatever is wrong with asking, the message may have arrived.
            Err(error) => Ok(self.wait(&error, None, progress).await?.then_some(Next::Find(sending))),
        }
    }

    /// Waits for the next attempt; not if the agent was away for too long, which ends the task. A cancellation is passed on
    /// meanwhile, once there is a task to cancel, and the agent's word of it is worth another attempt at once.
    async fn wait(
        &self,
        error: &ClientError,
        remote: Option<&TaskId>,
        progress: &mut Progress,
    ) -> Result<bool, AgentError> {
        let at_least = self.parts.breaker.reopens_in();
        let Some(wait) = progress.lost.wait(self.parts.clock.monotonic(), at_least) else {
            self.give_up_lost(error).await?;
            return Ok(false);
        };
        let is_passed = match remote {
            Some(_) => &mut progress.has_passed_cancel,
            None => &mut progress.has_noticed_cancel,
        };
        tokio::select! {
            () = self.parts.clock.sleep(wait) => {}
            () = self.pass_cancel(remote), if !*is_passed => *is_passed = true,
        }
        Ok(true)
    }

    /// Waits for a cancellation, and passes it on until the remote server has heard it, if the remote task is known.
    async fn pass_cancel(&self, remote: Option<&TaskId>) {
        self.task.canceled().await;
        if let Some(remote) = remote.filter(|_| self.task.is_over()) {
            self.parts.cancel_remote(self.context.clone(), self.task.id().clone(), remote.clone()).await;
        }
    }

    /// Whether a request is let through.
    pub(super) fn allowed(&self) -> Result<BreakerPermit<'a>, ClientError> {
        self.parts.breaker.allow().map_err(|_| unreachable_for_now())
    }

    /// Saves which remote task is followed from now on.
    pub(super) async fn attach(&self, attached: &Attached) -> Result<(), AgentError> {
        self.task.save(&Saved::Attached(attached.clone())).await?;
        let is_noted = self.noted.lock().as_ref() == Some(&attached.context);
        if !is_noted && !attached.context.as_str().is_empty() {
            self.task.note(&json!({ "contextId": attached.context })).await?;
            *self.noted.lock() = Some(attached.context.clone());
        }
        Ok(())
    }

    /// Records a call with the breaker.
    pub(super) fn called<T>(
        &self,
        permit: &BreakerPermit<'_>,
        result: Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        permit.record(RequestSource::Task(self.task.id()), RequestOutcome::of(&result));
        result
    }

    fn count_send(&self, outcome: &'static str) {
        let agent = self.parts.name.to_string();
        metrics::counter!(metric::REMOTE_SENDS, "agent" => agent, "outcome" => outcome).increment(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<A, F: Future>(_: impl FnOnce(A) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_task_that_is_followed_takes_little_memory_beside_its_stream() {
        let size = size_of_future(|turn: Box<RemoteTurn<'static>>| turn.run());
        assert!(size < 4_096, "{size} bytes");
    }
}
