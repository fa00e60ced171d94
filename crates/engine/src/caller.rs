//! The caller of a request, its scopes and its role.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::handle::TaskHandle;
use crate::ids::{AgentName, CallerId, Fence, TaskKey};

/// The identity every request is made under.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Owns the tasks it starts.
    pub id: CallerId,
    /// What it may do.
    pub scopes: Scopes,
}

impl Caller {
    /// The one caller of a server that runs open on loopback: all scopes.
    pub fn local() -> Self {
        let scopes = Scopes { agents: AgentScope::All, role: CallerRole::Admin };
        Self { id: CallerId::from("local"), scopes }
    }

    /// The run whose task token was shown; none of a caller with a key.
    pub fn calling_task(&self) -> Option<&TaskHandle> {
        self.scopes.agents.task().map(|scope| &scope.handle)
    }
}

/// Finds callers by their ids, for work that is done later on behalf of one: what it may do is looked up when the work
/// is done, not when it was ordered.
pub trait Callers: Send + Sync + 'static {
    /// The caller; none if its key is revoked or expired, or never existed.
    fn find(&self, id: &CallerId) -> Option<Caller>;

    /// The name that its key has, or had; none for a caller without one.
    fn name(&self, _id: &CallerId) -> Option<String> {
        None
    }
}

/// What a caller may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scopes {
    /// Which agents it may call. Its role, too, holds for these only.
    pub agents: AgentScope,
    /// What it may do with the work of other callers.
    pub role: CallerRole,
}

impl Scopes {
    /// Whether it may see and change what other callers have at an agent.
    pub fn operates(&self, agent: &AgentName) -> bool {
        self.role >= CallerRole::Operator && self.agents.covers(agent)
    }

    /// Whether it may see what other callers have at an agent.
    pub fn views(&self, agent: &AgentName) -> bool {
        self.role >= CallerRole::Viewer && self.agents.covers(agent)
    }
}

/// What a caller may do with the work of other callers. Each role includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallerRole {
    /// Nothing: it has its own tasks.
    #[default]
    None,
    /// Sees it.
    Viewer,
    /// Sees and changes it.
    Operator,
    /// Sees and changes it, and the server's own settings.
    Admin,
}

impl CallerRole {
    /// All of them, from the least to the most.
    pub const ALL: [Self; 4] = [Self::None, Self::Viewer, Self::Operator, Self::Admin];

    /// Its name, in commands, in lists and in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for CallerRole {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// A name that no role has.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a role: none, viewer, operator and admin are")]
pub struct UnknownRole(String);

impl FromStr for CallerRole {
    type Err = UnknownRole;

    fn from_str(name: &str) -> Result<Self, UnknownRole> {
        Self::ALL.into_iter().find(|role| role.name() == name).ok_or_else(|| UnknownRole(name.to_owned()))
    }
}

/// Which agents a caller may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentScope {
    /// Every one, also those added later.
    All,
    /// These only.
    Only(Vec<AgentName>),
    /// Those that a running task may call, as its token says; of tasks only those that it has started.
    Task(Arc<TaskScope>),
}

/// What the holder of a task token may do.
pub struct TaskScope {
    /// The task that calls.
    pub(crate) parent: TaskKey,
    /// The fence that its run began under.
    pub(crate) fence: Fence,
    /// The agents it may call.
    pub(crate) agents: Vec<AgentName>,
    /// Its run.
    pub(crate) handle: TaskHandle,
}

impl PartialEq for TaskScope {
    fn eq(&self, other: &Self) -> bool {
        (self.parent, self.fence, &self.agents) == (other.parent, other.fence, &other.agents)
    }
}

impl Eq for TaskScope {}

impl fmt::Debug for TaskScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let task = self.handle.id();
        formatter.debug_struct("TaskScope").field("task", task).field("agents", &self.agents).finish_non_exhaustive()
    }
}

impl AgentScope {
    /// Whether the agent is among them. The server's own are: what they do was routed within the scope.
    pub fn allows(&self, agent: &AgentName) -> bool {
        agent.is_own() || self.covers(agent)
    }

    /// Whether a role holds for the agent. For the server's own it does only if the scope is every agent, else a viewer of
    /// one agent would see the tasks of all of them.
    pub fn covers(&self, agent: &AgentName) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(agent),
            Self::Task(scope) => scope.agents.contains(agent),
        }
    }

    /// The agents that are named; none if it is every one.
    pub fn names(&self) -> Option<&[AgentName]> {
        match self {
            Self::All => None,
            Self::Only(names) => Some(names),
            Self::Task(scope) => Some(&scope.agents),
        }
    }

    /// The run whose token was shown.
    pub(crate) fn task(&self) -> Option<&TaskScope> {
        match self {
            Self::Task(scope) => Some(scope),
            _ => None,
        }
    }

    /// Whether a task of the caller is among those it may see, by the task that started it.
    pub(crate) fn sees_child_of(&self, parent: Option<TaskKey>) -> bool {
        self.task().is_none_or(|scope| parent == Some(scope.parent))
    }
}
