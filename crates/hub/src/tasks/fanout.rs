//! `~fanout`: hands one message to several agents and ends as its policy says.
//!
//! Each child is a call under the key of its number, so a turn that is recovered joins the children it had. Their owner is
//! the caller, who can read and answer them. While one of them works, a question of another is only told; when all that have
//! not ended wait, the fan-out waits too, and a message to it goes on to the child it names (`referenceTaskIds`), or to the
//! only one.

mod report;
mod tally;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchboard_a2a::{Message, MessageId, Metadata, TaskState};
use switchboard_engine::clock::{Clock, SystemClock};
use switchboard_engine::fold::ROUTING_KEY;
use switchboard_engine::{
    Agent, AgentError, Call, CallOwner, Cause, Error, Manifest, Recovery, RoutingHints, Seq, Stopped, TaskHandle,
    TaskView, Turn, state_label,
};

use crate::metric_definitions as metric;
use crate::tasks::child_report;
use crate::tasks::children::{self, Change, Child, Stage, next_news, take_news};
use crate::tasks::fanout_plan::{FanoutPlan, FanoutPolicy};
use tally::Verdict;

/// What an ambiguous message is answered with.
const NAME_ONE: &str = "\nName the task that a message is for in referenceTaskIds.";

/// Limits of fan-outs.
#[derive(Clone, Copy, Debug)]
pub struct FanoutOptions {
    /// The most agents that one message may go to.
    pub max: usize,
    /// Larger results of a child are named, not repeated.
    pub inline: usize,
}

/// The agent that carries fan-outs out.
pub struct Fanout {
    options: FanoutOptions,
    clock: Arc<dyn Clock>,
}

/// What survives a restart beside the children themselves.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Saved {
    /// The skill that is wanted of every child.
    skill: Option<String>,
    /// The metadata of the request, for every child.
    metadata: Option<Metadata>,
    /// Media types that the caller can read.
    modes: Vec<String>,
    /// Which child a message was given to, by its number: repeated, it must not go to another one.
    given: BTreeMap<Seq, usize>,
}

/// A fan-out that runs.
struct Run {
    task: TaskHandle,
    options: FanoutOptions,
    clock: Arc<dyn Clock>,
    plan: FanoutPlan,
    /// What the children get.
    message: Message,
    saved: Saved,
    children: Vec<Child>,
}

impl Fanout {
    /// A fan-out within limits.
    pub fn new(options: FanoutOptions) -> Self {
        Self { options, clock: Arc::new(SystemClock) }
    }

    /// The same with a clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }
}

impl Agent for Fanout {
    fn manifest(&self) -> Manifest {
        let any = vec!["*/*".to_owned()];
        let manifest = Manifest::new("Fan-out", "Hands a message to several agents");
        Manifest { input_modes: any.clone(), output_modes: any, ..manifest }
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        let known = task.snapshot();
        let decision = known.metadata.as_ref().and_then(|metadata| metadata.get(ROUTING_KEY));
        let plan = decision.and_then(|decision| decision.read::<FanoutPlan>().ok());
        let (Some(plan), Some(first)) = (plan, known.history.first().cloned()) else {
            return Ok(task.reject("this task has no list of agents: send to the root address, with targets").await?);
        };
        if plan.targets.is_empty() || plan.targets.len() > self.options.max {
            let (count, max) = (plan.targets.len(), self.options.max);
            return Ok(task.reject(format!("{count} agents: a message goes to 1 to {max} (hub.fanout.max)")).await?);
        }
        let saved = turn.saved.as_ref().and_then(|saved| saved.read::<Saved>().ok());
        let saved = saved.unwrap_or_else(|| {
            let metadata = RoutingHints::without_followed(turn.metadata.clone());
            let (skill, modes) = (turn.skill().map(str::to_owned), turn.accepted_output_modes.clone());
            Saved { skill, metadata, modes, ..Saved::default() }
        });
        // Its number: a client may use an id again.
        let is_first = turn.seq == Seq(1);
        let context_id = Some(task.context_id().clone());
        let message = for_children(Message { task_id: None, context_id, ..first });
        let (options, clock) = (self.options, Arc::clone(&self.clock));
        let mut run = Run { task, options, clock, plan, message, saved, children: Vec::new() };
        run.begin().await?;
        if !is_first && !matches!(turn.cause, Cause::Settled { .. }) {
            run.hand_on(turn.message, turn.seq).await?;
        }
        run.follow().await
    }

    async fn recover(&self, _task: &TaskView) -> Recovery {
        Recovery::Resume
    }
}

impl Run {
    /// Begins the children, or joins those of an earlier run.
    async fn begin(&mut self) -> Result<(), AgentError> {
        let count = match self.plan.policy {
            FanoutPolicy::Failover => 1,
            _ => self.plan.targets.len(),
        };
        self.task.save(&self.saved).await?;
        while self.children.len() < count {
            self.begin_next().await?;
        }
        let names: Vec<&str> = self.plan.targets.iter().map(|name| name.as_str()).collect();
        self.tell("asked", format!("asked {} ({})", names.join(", "), self.plan.policy)).await
    }

    async fn begin_next(&mut self) -> Result<(), AgentError> {
        let index = self.children.len();
        let Some(agent) = self.plan.targets.get(index).cloned() else { return Ok(()) };
        let call = Call {
            run_as: CallOwner::Owner,
            skill: self.saved.skill.clone(),
            metadata: self.saved.metadata.clone(),
            accepted_output_modes: self.saved.modes.clone(),
            ..Call::new(agent, self.message.clone()).keyed(index.to_string())
        };
        self.children.push(children::begin(&self.task, &*self.clock, call).await?);
        self.tell_end(index).await
    }

    /// Follows the children to the end.
    async fn follow(&mut self) -> Result<(), AgentError> {
        loop {
            let states: Vec<_> = self.children.iter().map(Child::ended).collect();
            match tally::decide(self.plan.policy, &states, self.plan.targets.len()) {
                Verdict::Next => self.begin_next().await?,
                Verdict::Wait if self.all_wait() => self.ask().await?,
                Verdict::Wait => self.wait().await?,
                Verdict::Completed => return self.end(TaskState::Completed).await,
                Verdict::Failed => return self.end(TaskState::Failed).await,
            }
        }
    }

    fn all_wait(&self) -> bool {
        self.children.iter().all(|child| child.ended().is_some() || child.question().is_some())
    }

    /// Waits for news of a child, or for a message.
    async fn wait(&mut self) -> Result<(), AgentError> {
        let task = self.task.clone();
        let children = &mut self.children;
        let happened = task.release_permit_while(async {
            tokio::select! {
                news = next_news(children) => Ok(news),
                message = task.next_message() => Err(message),
            }
        });
        match happened.await? {
            Ok(news) => self.take(news.map_err(failed)?).await,
            Err(message) => self.hand_on(message?, self.task.last_message()).await,
        }
    }

    /// Asks what the children ask, until one is answered here or goes on by itself.
    async fn ask(&mut self) -> Result<(), AgentError> {
        let task = self.task.clone();
        let question = report::question(&self.children, "");
        let (answer, news) = {
            let mut asked = std::pin::pin!(task.ask_message(question));
            tokio::select! {
                biased;
                // First: one that has gone on already need not be asked about.
                news = next_news(&mut self.children) => match task.settle().await {
                    Ok(true) => (Some(asked.await), Some(news)),
                    // It had not been asked yet.
                    Ok(false) => (None, Some(news)),
                    Err(Error::QuestionClosed { .. }) => (Some(asked.await), Some(news)),
                    Err(error) => return Err(failed(error)),
                },
                answer = &mut asked => (Some(answer), None),
            }
        };
        if let Some(news) = news {
            self.take(news.map_err(failed)?).await?;
        }
        match answer {
            Some(Ok(message)) => self.hand_on(message, self.task.last_message()).await,
            None | Some(Err(Stopped::Settled)) => Ok(()),
            Some(Err(stopped)) => Err(stopped.into()),
        }
    }

    async fn take(&mut self, news: children::News) -> Result<(), AgentError> {
        let index = news.index;
        match take_news(&mut self.children, news).await.map_err(failed)? {
            Change::Nothing => Ok(()),
            Change::Ended => self.tell_end(index).await,
            Change::Asks(_) if self.all_wait() => Ok(()),
            Change::Asks(question) => {
                let words = self.children.get(index).map(report::asks).unwrap_or_default();
                self.tell(&format!("child-{index}-asks-{question}"), words).await
            }
        }
    }

    /// Reports WORKING with the children as they are, unless an earlier run has. What it is about names the message within
    /// the task.
    async fn tell(&self, about: &str, words: String) -> Result<(), AgentError> {
        let message_id = MessageId::from(format!("{}/{about}", self.task.id()));
        let known = self.task.snapshot();
        if known.status.message.iter().chain(&known.history).any(|said| said.message_id == message_id) {
            return Ok(());
        }
        let message = Message { message_id, ..Message::text(switchboard_a2a::Role::Agent, words) };
        let metadata = child_report::children_metadata(&self.children);
        Ok(self.task.say(TaskState::Working, Some(message), metadata).await?)
    }

    /// The artifact of a child that has ended, unless an earlier run has made it.
    async fn tell_end(&self, index: usize) -> Result<(), AgentError> {
        let Some(child) = self.children.get(index) else { return Ok(()) };
        let Some(artifact) = child_report::artifact(index, child, self.options.inline) else { return Ok(()) };
        let is_told = self.task.snapshot().artifacts.iter().any(|known| known.artifact_id == artifact.artifact_id);
        if is_told {
            return Ok(());
        }
        if let Some(state) = child.ended() {
            count(self.plan.policy, state_label(state));
        }
        Ok(self.task.artifact(artifact).await?)
    }

    /// Gives a message to the child it names, or to the only one that it can be for.
    async fn hand_on(&mut self, message: Message, seq: Seq) -> Result<(), AgentError> {
        let about = format!("message-{seq}");
        let target = self.saved.given.get(&seq).copied().or_else(|| self.target_of(&message));
        let Some(child) = target.and_then(|index| self.children.get(index)) else {
            return self.tell(&about, format!("it is not clear which agent that message is for.{NAME_ONE}")).await;
        };
        let Some(called) = child.called() else {
            return self.tell(&about, format!("{} has ended and takes no more messages", child.agent)).await;
        };
        if let Some(index) = target
            && self.saved.given.insert(seq, index).is_none()
        {
            self.task.save_committed(&self.saved).await?;
        }
        let message = for_children(Message { reference_task_ids: Vec::new(), ..message });
        match called.answer(message, Some(&seq.0.to_string())).await {
            Ok(()) => self.forget_question(target),
            Err(error) => return self.tell(&about, format!("{} did not take the message: {error}", child.agent)).await,
        }
        Ok(())
    }

    /// The child has gone on with the answer, and its events will say so.
    fn forget_question(&mut self, index: Option<usize>) {
        let child = index.and_then(|index| self.children.get_mut(index));
        if let Some(Child { stage: Stage::Open { question, .. }, .. }) = child {
            *question = None;
        }
    }

    fn target_of(&self, message: &Message) -> Option<usize> {
        let named = |child: &Child| {
            let id = child.called().map(switchboard_engine::Called::id);
            id.is_some_and(|id| message.reference_task_ids.contains(id))
        };
        let only = |fits: &dyn Fn(&Child) -> bool| {
            let mut found = self.children.iter().enumerate().filter(|(_, child)| fits(child)).map(|(index, _)| index);
            found.next().filter(|_| found.next().is_none())
        };
        if !message.reference_task_ids.is_empty() {
            return only(&named);
        }
        only(&|child| child.question().is_some()).or_else(|| only(&|child| child.called().is_some()))
    }

    /// Cancels what has not ended, and ends.
    async fn end(&mut self, state: TaskState) -> Result<(), AgentError> {
        let words = report::summary(&self.children, self.plan.targets.len());
        for child in self.children.drain(..) {
            let Stage::Open { called, .. } = child.stage else { continue };
            // The result stands without it, and a job cancels what an ended task has left behind.
            if let Err(error) = called.cancel().await {
                let (task, child) = (self.task.id(), called.id());
                tracing::warn!(%task, %child, %error, "a child that is not needed any more is left to a job");
            }
            let policy = self.plan.policy;
            called.on_end(move |state| count(policy, state_label(state)));
        }
        let message = Message::text(switchboard_a2a::Role::Agent, words);
        match state {
            TaskState::Completed => self.task.complete_message(message).await?,
            _ => self.task.fail_message(message).await?,
        }
        Ok(())
    }
}

/// A message without the hints that were for routing: the children are what they have come to. A child may be at another
/// server, which would route by names of this one.
fn for_children(message: Message) -> Message {
    Message { metadata: RoutingHints::without_followed(message.metadata), ..message }
}

fn failed(error: Error) -> AgentError {
    AgentError::new(error.to_string())
}

fn count(policy: FanoutPolicy, outcome: &'static str) {
    metrics::counter!(metric::FANOUT_CHILDREN, "policy" => policy.name(), "outcome" => outcome).increment(1);
}
