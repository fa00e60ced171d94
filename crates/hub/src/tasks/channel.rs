//! `~channel`: hands what is said in a chat to one agent, a burst at a time.
//!
//! It waits until a burst is over, joins it, and saves the joined message before it calls the agent under the number of the
//! call: a turn that is recovered makes the same call, and joins the task it had. What is said while the agent works stays
//! unread: that is the mailbox. The agent may have it taken out, and the rest becomes the next call. A question of the agent is
//! asked here, and what is said then is its answer; an approval is nobody's to give in a chat.
//!
//! It ends COMPLETED whatever became of its calls, which is in its artifacts: a task that fails would lose what is unread.

mod gather;
pub(crate) mod joined;
pub mod mailboxes;
mod report;
mod saved;

use std::sync::Arc;

use futures_util::{FutureExt, TryFutureExt};
use switchboard_a2a::{Message, Part, TaskState, Timestamp};
use switchboard_engine::clock::{Clock, SystemClock};
use switchboard_engine::event::Received;
use switchboard_engine::fold::{NumberedMessage, ROUTING_KEY};
use switchboard_engine::{
    Agent, AgentError, Call, CallError, CallOwner, Cause, Error, Manifest, Recovery, Seq, Stopped, TaskHandle,
    TaskView, Turn, state_label,
};

use self::joined::Origin;
use self::mailboxes::{Drain, Mailboxes, OpenMailbox};
use self::saved::{Answer, Saved};
use crate::metric_definitions as metric;
use crate::tasks::channel_plan::ChannelPlan;
use crate::tasks::children::{self, Child, News, Stage, next_news, take_news};

/// Limits of what is handed on.
#[derive(Clone, Copy, Debug)]
pub struct ChannelOptions {
    /// Messages are joined up to so many bytes.
    pub joined: usize,
    /// Larger answers are named, not repeated.
    pub inline: usize,
}

/// The agent that hands on what channels say.
pub struct Channel {
    options: ChannelOptions,
    mailboxes: Arc<Mailboxes>,
    clock: Arc<dyn Clock>,
}

/// A channel's turn.
struct Run {
    task: TaskHandle,
    options: ChannelOptions,
    mailboxes: Arc<Mailboxes>,
    clock: Arc<dyn Clock>,
    plan: ChannelPlan,
    saved: Saved,
    /// A message that the turn has got and that is not in `saved`.
    heard: Option<NumberedMessage>,
    /// The task of the last call.
    child: Option<Child>,
    /// Where the last messages came from.
    origin: Option<Origin>,
    /// Open while the agent works.
    mailbox: Option<OpenMailbox>,
    /// Whether it was told that the agent waits for an approval.
    is_waiting_told: bool,
}

/// What a turn waits for while its agent works.
enum Happened {
    News(Result<News, Error>),
    Drain(Drain),
}

impl Channel {
    /// One within limits, whose mailboxes others can ask for.
    pub fn new(options: ChannelOptions, mailboxes: Arc<Mailboxes>) -> Self {
        Self { options, mailboxes, clock: Arc::new(SystemClock) }
    }

    /// The same with a clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }
}

impl Agent for Channel {
    fn manifest(&self) -> Manifest {
        let any = vec!["*/*".to_owned()];
        let manifest = Manifest::new("Channel", "Hands what is said in a chat to an agent");
        Manifest { input_modes: any.clone(), output_modes: any, ..manifest }
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        let known = task.snapshot();
        let decision = known.metadata.as_ref().and_then(|metadata| metadata.get(ROUTING_KEY));
        let Some(plan) = decision.and_then(ChannelPlan::read) else {
            return Ok(task.reject("this task has no plan: a channel's messages go to /api/channels").await?);
        };
        let saved: Saved = turn.saved.as_ref().and_then(|saved| saved.read().ok()).unwrap_or_default();
        let is_new = !saved.has(turn.seq) && !matches!(turn.cause, Cause::Settled { .. });
        let origin = Origin::of(&turn.message);
        let at = task.received_at(turn.seq).unwrap_or_else(|| self.clock.now());
        let heard = is_new.then(|| heard(turn.message, turn.seq, at));
        let mut run = Run {
            task,
            options: self.options,
            mailboxes: Arc::clone(&self.mailboxes),
            clock: Arc::clone(&self.clock),
            plan,
            saved,
            heard,
            child: None,
            origin,
            mailbox: None,
            is_waiting_told: false,
        };
        run.go_on().await
    }

    async fn recover(&self, _task: &TaskView) -> Recovery {
        Recovery::Resume
    }
}

impl Run {
    async fn go_on(&mut self) -> Result<(), AgentError> {
        let left = |message: &NumberedMessage| self.saved.has(Seq(message.seq));
        if self.task.unread().iter().any(left) {
            // In what was saved by a process that was killed before it had taken them.
            self.task.take_unread(Seq(self.saved.through), &self.saved).await?;
        }
        if self.saved.call.is_some() {
            self.call().await?;
        }
        if self.saved.answer.is_some() {
            self.answer().await?;
        }
        loop {
            if self.child.as_ref().is_some_and(|child| child.ended().is_some()) {
                self.tell_end().await?;
            }
            let works = self.child.is_some() && self.heard.is_none();
            let is_asked = self.child.as_ref().is_some_and(|child| child.question().is_some());
            if !works || (is_asked && !self.waits_for_approval()) {
                self.mailbox = None;
            }
            if self.heard.is_some() || (self.child.is_none() && !self.task.unread().is_empty()) {
                self.hand_on().await?;
            } else if self.child.is_none() {
                // Something that is said just now is the next turn.
                return Ok(self.task.complete().await?);
            } else if is_asked && !self.waits_for_approval() {
                self.ask().await?;
            } else {
                self.wait().await?;
            }
        }
    }

    /// Joins a burst, and makes it a call or an answer.
    async fn hand_on(&mut self) -> Result<(), AgentError> {
        gather::quiet(&self.task, &*self.clock, &self.plan, self.heard.as_ref()).await?;
        let heard = self.heard.take();
        let all = gather::fitting(heard.clone(), self.task.unread(), self.options.joined);
        let Some(last) = all.last().map(|message| message.seq) else { return Ok(()) };
        // Of a burst that is too long, the rest is for the next time.
        self.heard = heard.filter(|heard| heard.seq > last);
        let message = joined::join(&all, self.task.context_id());
        self.origin = Origin::of(&message);
        self.saved.through = self.saved.through.max(last);
        let is_answer = self.child.as_ref().is_some_and(|child| child.called().is_some());
        match is_answer {
            true => self.saved.answer = Some(Answer { key: last, message }),
            false => self.begin_call(message),
        }
        self.task.take_unread(Seq(last), &self.saved).await?;
        if is_answer { self.answer().await } else { self.call().await }
    }

    fn begin_call(&mut self, message: Message) {
        self.saved.calls += 1;
        self.saved.call = Some(message);
        self.child = None;
    }

    /// Calls the agent, or joins the task that an earlier turn has begun with this call.
    async fn call(&mut self) -> Result<(), AgentError> {
        let (Some(message), Some(target)) = (self.saved.call.clone(), self.plan.target()) else { return Ok(()) };
        self.origin = Origin::of(&message);
        let call = Call {
            run_as: CallOwner::Owner,
            skill: self.plan.skill.clone(),
            ..Call::new(target.clone(), message).keyed(self.saved.calls.to_string())
        };
        let mut child = children::begin(&self.task, &*self.clock, call).await?;
        if let Stage::Open { called, question } = child.stage {
            // Who writes in a chat is not the owner of the task.
            child.stage = Stage::Open { called: Box::new(called.without_approvals()), question };
        }
        self.child = Some(child);
        self.is_waiting_told = false;
        self.tell(format!("asked {target}")).await
    }

    /// Gives the agent what was said. Where its task takes nothing more, that is the next call.
    async fn answer(&mut self) -> Result<(), AgentError> {
        let Some(Answer { key, message }) = self.saved.answer.take() else { return Ok(()) };
        if self.give(&message, key).await? {
            if let Some(Child { stage: Stage::Open { question, .. }, .. }) = &mut self.child {
                *question = None;
            }
            return Ok(());
        }
        self.follow_to_end().await?;
        self.begin_call(message);
        self.task.save_committed(&self.saved).await?;
        self.call().await
    }

    /// Whether the agent's task takes a message. If it does not, it ends: by itself, by an approval, or because it is canceled.
    async fn give(&self, message: &Message, key: u64) -> Result<bool, AgentError> {
        let Some(called) = self.child.as_ref().and_then(Child::called) else { return Ok(false) };
        let key = key.to_string();
        let given = children::patiently(&self.task, &*self.clock, || {
            called.answer(message.clone(), Some(&key)).map_err(CallError::Refused).boxed()
        });
        match given.await {
            Ok(()) => return Ok(true),
            Err(CallError::Stopped(stopped)) => return Err(stopped.into()),
            Err(CallError::Refused(error)) => tracing::debug!(task = %self.task.id(), %error, "an answer was refused"),
        }
        match self.child.as_ref().filter(|_| called.asks_approval()) {
            Some(child) => self.tell(report::waits_for_approval(child)).await?,
            None => called.cancel().await.map_err(failed)?,
        }
        Ok(false)
    }

    /// Follows the agent's task to its end.
    async fn follow_to_end(&mut self) -> Result<(), AgentError> {
        while let Some(child) = self.child.as_mut().filter(|child| child.called().is_some()) {
            let task = self.task.clone();
            let news = task.release_permit_while(next_news(std::slice::from_mut(child))).await?;
            take_news(std::slice::from_mut(child), news.map_err(failed)?).await.map_err(failed)?;
        }
        self.tell_end().await
    }

    /// Waits for news of the agent's task, and lets others take out what is unread.
    async fn wait(&mut self) -> Result<(), AgentError> {
        if self.waits_for_approval() && !self.is_waiting_told {
            self.is_waiting_told = true;
            let words = self.child.as_ref().map(report::waits_for_approval).unwrap_or_default();
            self.tell(words).await?;
        }
        let Some(child) = self.child.as_mut() else { return Ok(()) };
        let mailbox = self.mailbox.get_or_insert_with(|| self.mailboxes.open(&self.task));
        let happened = self.task.release_permit_while(async {
            tokio::select! {
                news = next_news(std::slice::from_mut(child)) => Happened::News(news),
                drain = mailbox.next() => Happened::Drain(drain),
            }
        });
        match happened.await? {
            Happened::News(news) => {
                take_news(std::slice::from_mut(child), news.map_err(failed)?).await.map_err(failed)?;
                self.is_waiting_told &= child.question().is_some();
                Ok(())
            }
            Happened::Drain(drain) => self.drain(drain).await,
        }
    }

    /// Takes out what is unread, for whoever has asked.
    async fn drain(&mut self, drain: Drain) -> Result<(), AgentError> {
        let unread = self.task.unread();
        if let Some(last) = unread.last().filter(|_| !drain.is_closed()) {
            self.saved.through = self.saved.through.max(last.seq);
            self.task.take_unread(Seq(last.seq), &self.saved).await?;
        }
        // Nobody may be left to hear it.
        let _ = drain.send(unread);
        Ok(())
    }

    /// Asks what the agent asks, until it is answered here or goes on by itself.
    async fn ask(&mut self) -> Result<(), AgentError> {
        let Some(child) = self.child.as_mut() else { return Ok(()) };
        let task = self.task.clone();
        let question = report::question(child, self.origin.as_ref());
        let (answer, news) = {
            let mut asked = std::pin::pin!(task.ask_message(question));
            tokio::select! {
                biased;
                // First: one that has gone on already need not be asked about.
                news = next_news(std::slice::from_mut(child)) => match task.settle().await {
                    Ok(true) | Err(Error::QuestionClosed { .. }) => (Some(asked.await), Some(news)),
                    // It had not been asked yet.
                    Ok(false) => (None, Some(news)),
                    Err(error) => return Err(failed(error)),
                },
                answer = &mut asked => (Some(answer), None),
            }
        };
        if let Some(news) = news {
            take_news(std::slice::from_mut(child), news.map_err(failed)?).await.map_err(failed)?;
        }
        match answer {
            Some(Ok(message)) => {
                let seq = task.last_message();
                let at = task.received_at(seq).unwrap_or_else(|| self.clock.now());
                self.heard = Some(heard(message, seq, at));
            }
            None | Some(Err(Stopped::Settled)) => {}
            Some(Err(stopped)) => return Err(stopped.into()),
        }
        Ok(())
    }

    fn waits_for_approval(&self) -> bool {
        let called = self.child.as_ref().filter(|child| child.question().is_some()).and_then(Child::called);
        called.is_some_and(switchboard_engine::Called::asks_approval)
    }

    /// What a call has come to, unless an earlier turn has told it.
    async fn tell_end(&mut self) -> Result<(), AgentError> {
        let Some(child) = self.child.take() else { return Ok(()) };
        let answer = report::answer(self.saved.calls, &child, self.origin.as_ref(), self.options.inline);
        let told = self.task.snapshot().artifacts;
        if let Some(answer) = answer.filter(|answer| told.iter().all(|known| known.artifact_id != answer.artifact_id)) {
            let state = child.ended().map_or("canceled", state_label);
            metrics::counter!(metric::CHANNEL_CALLS, "outcome" => state).increment(1);
            self.task.artifact(answer).await?;
        }
        self.saved.call = None;
        Ok(self.task.save(&self.saved).await?)
    }

    /// Reports WORKING with how the agent's task stands.
    async fn tell(&self, words: String) -> Result<(), AgentError> {
        let message = report::said(vec![Part::text(words)], self.origin.as_ref());
        let metadata = report::metadata(self.child.as_ref());
        Ok(self.task.say(TaskState::Working, Some(message), metadata).await?)
    }
}

fn heard(message: Message, seq: Seq, at: Timestamp) -> NumberedMessage {
    NumberedMessage { seq: seq.0, received: Arc::new(Received::new(message, at)) }
}

fn failed(error: Error) -> AgentError {
    AgentError::new(error.to_string())
}
