//! The `Agent` trait that an agent author implements, and its types.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use switchboard_a2a::{Json, Message, Metadata, Task};

use crate::call::CallError;
use crate::handle::{Stopped, TaskHandle};
use crate::ids::{CallerId, Seq};
use crate::manifest::Manifest;
use crate::review::{Decision, Review, Verdict};
use crate::routing_hints::RoutingHints;
use crate::trace_context::TraceContext;

/// Something that does tasks.
pub trait Agent: Send + Sync + 'static {
    /// What it says of itself; the card is made from it.
    fn manifest(&self) -> Manifest;

    /// Works on one turn. It ends the task with `complete`, `fail`, `reject` or `reply`, or parks it with a question;
    /// returning without any of these fails the task.
    fn run(&self, turn: Turn, task: TaskHandle) -> impl Future<Output = Result<(), AgentError>> + Send;

    /// Whether a message that names a conversation and no task answers the one question that is open there. Without it
    /// such a message always begins a task.
    fn is_answer(&self, message: &Message) -> bool {
        let _ = message;
        false
    }

    /// Asked when a turn has lost its process: what to do with the task now.
    fn recover(&self, task: &TaskView) -> impl Future<Output = Recovery> + Send {
        let _ = task;
        async { Recovery::Fail("the server stopped while the task was running".to_owned()) }
    }
}

impl<A: Agent> Agent for Arc<A> {
    fn manifest(&self) -> Manifest {
        A::manifest(self)
    }

    fn run(&self, turn: Turn, task: TaskHandle) -> impl Future<Output = Result<(), AgentError>> + Send {
        A::run(self, turn, task)
    }

    fn is_answer(&self, message: &Message) -> bool {
        A::is_answer(self, message)
    }

    fn recover(&self, task: &TaskView) -> impl Future<Output = Recovery> + Send {
        A::recover(self, task)
    }
}

/// What started a turn.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The message to work on.
    pub message: Message,
    /// The number of its event in the task's log. It names the message, whatever id its sender gave it: see
    /// [`TaskHandle::turn_on`].
    pub seq: Seq,
    /// The number of the message that the turn began with: this one, unless it is an answer or came while the turn ran.
    pub began: Seq,
    /// Why it is being worked on now.
    pub cause: Cause,
    /// What the agent saved earlier.
    pub saved: Option<Json>,
    /// Of a recovered turn: whether the process before has stopped in order, so that the turn did not take it down.
    pub was_stopped: bool,
    /// Who asks.
    pub caller: CallerId,
    /// Who wrote the message, where that is not the caller: the reviewer of a question.
    pub by: Option<CallerId>,
    /// What the message decides, where it is a reviewer's or was made by the time: then it is the `decision`.
    pub verdict: Option<Verdict>,
    /// Media types the caller can read; empty means any.
    pub accepted_output_modes: Vec<String>,
    /// The request's metadata.
    pub metadata: Option<Metadata>,
    /// The request's trace context, for what the agent calls in turn. An answer has its own, or none.
    pub trace: Option<Arc<TraceContext>>,
    /// The extensions of the agent that the caller has declared, so that they are active; without those that the protocol
    /// model here knows by itself and those that every caller has to declare.
    pub extensions: Vec<String>,
    /// The caller's routing hints.
    pub hints: RoutingHints,
    /// What the directory says of how it picked the agent.
    pub routing: Option<Json>,
    /// What a reviewer has decided last in this task; its `turn` says about which message.
    pub decision: Option<Decision>,
    /// What the question said of its answer that the message answers, if it said so.
    pub answered: Option<Box<Review>>,
    /// Skills that reviewers have approved for this task.
    pub approved: BTreeSet<String>,
}

/// Why a message is being worked on now.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// The first message of a task.
    Begin,
    /// It answers this question, which the agent asked before it was put away.
    Answer {
        /// The question.
        question: Option<Message>,
    },
    /// This question of the turn on the message was settled elsewhere ([`crate::Engine::settled`]); there is no answer.
    Settled {
        /// The question.
        question: Option<Message>,
    },
    /// It waited while the turn before was running.
    Next,
    /// The turn lost its process and [`Agent::recover`] said to go on.
    Recovered,
}

/// A task as [`Agent::recover`] sees it.
#[derive(Clone, Debug)]
pub struct TaskView {
    /// The task so far.
    pub task: Task,
    /// The message that was being worked on. Of a turn that a reviewer has approved, the one that was approved.
    pub message: Message,
    /// The number of the newest message that was being worked on, which may be a reviewer's decision.
    pub seq: Seq,
    /// The number of the message that the turn began with.
    pub began: Seq,
    /// What the agent saved.
    pub saved: Option<Json>,
    /// Who asks.
    pub caller: CallerId,
    /// The caller's routing hints of that message.
    pub hints: RoutingHints,
    /// What the question said of its answer that the newest message answers, if it said so.
    pub answered: Option<Box<Review>>,
}

/// What to do with a task whose turn lost its process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Call `run` again with the unfinished message.
    Resume,
    /// Call `run` again with the task's first message.
    Restart,
    /// It had not begun to work: call `run` again with the unfinished message when it is its turn, after all that go on
    /// and before all that come new.
    Queue,
    /// Give up and say why.
    Fail(String),
}

/// Why a run ended without ending its task.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The agent's own reason, shown to the caller.
    #[error("{0}")]
    Failed(String),
    /// The task was stopped under the agent.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl From<CallError> for AgentError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Stopped(stopped) => Self::Stopped(stopped),
            CallError::Refused(error) => Self::Failed(error.to_string()),
        }
    }
}

impl AgentError {
    /// A reason shown to the caller.
    pub fn new(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }
}

/// [`Agent`] in a form that can be kept in a list; every agent is one.
pub(crate) trait DynAgent: Send + Sync {
    fn manifest(&self) -> Manifest;
    fn run_boxed(&self, start: Box<(Turn, TaskHandle)>) -> BoxFuture<'_, Result<(), AgentError>>;
    fn is_answer(&self, message: &Message) -> bool;
    fn recover_boxed<'a>(&'a self, task: &'a TaskView) -> BoxFuture<'a, Recovery>;
}

impl<A: Agent> DynAgent for A {
    fn manifest(&self) -> Manifest {
        Agent::manifest(self)
    }

    fn run_boxed(&self, start: Box<(Turn, TaskHandle)>) -> BoxFuture<'_, Result<(), AgentError>> {
        let (turn, task) = *start;
        self.run(turn, task).boxed()
    }

    fn is_answer(&self, message: &Message) -> bool {
        Agent::is_answer(self, message)
    }

    fn recover_boxed<'a>(&'a self, task: &'a TaskView) -> BoxFuture<'a, Recovery> {
        self.recover(task).boxed()
    }
}

/// Any agent, for one that wraps it.
pub struct WrappedAgent(pub(crate) Box<dyn DynAgent>);

impl Agent for WrappedAgent {
    fn manifest(&self) -> Manifest {
        self.0.manifest()
    }

    fn run(&self, turn: Turn, task: TaskHandle) -> impl Future<Output = Result<(), AgentError>> + Send {
        self.0.run_boxed(Box::new((turn, task)))
    }

    fn is_answer(&self, message: &Message) -> bool {
        self.0.is_answer(message)
    }

    async fn recover(&self, task: &TaskView) -> Recovery {
        self.0.recover_boxed(task).await
    }
}

impl Turn {
    /// The text of the message.
    pub fn text(&self) -> String {
        self.message.joined_text()
    }

    /// The id of the skill the caller wants, or that routing has picked the agent by. It need not be one of the agent's.
    pub fn skill(&self) -> Option<&str> {
        self.hints.skill.as_deref()
    }

    /// The profile the caller wants to be served with, if it names one.
    pub fn profile(&self) -> Option<&str> {
        self.hints.profile.as_deref()
    }
}
