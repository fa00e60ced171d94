//! Which agent serves a request. The kernel ships a fixed list; a hub can route instead.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use switchboard_a2a::Message;

use crate::agent::{Agent, DynAgent};
use crate::caller::Caller;
use crate::error::Error;
use crate::ids::AgentName;
use crate::manifest::Manifest;

/// Where a request was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// The server as one agent.
    Root,
    /// One agent by name.
    Agent(AgentName),
}

impl Address {
    /// The address as a key.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Root => "",
            Self::Agent(name) => name.as_str(),
        }
    }

    /// Whether a task of this agent can be seen from here.
    pub fn shows(&self, agent: &AgentName) -> bool {
        match self {
            Self::Root => true,
            Self::Agent(name) => name == agent,
        }
    }
}

/// Knows the agents.
pub trait Directory: Send + Sync + 'static {
    /// The agent that serves a request; the message is there to route by.
    fn resolve(&self, address: &Address, caller: &Caller, message: Option<&Message>) -> Result<Arc<Hosted>, Error>;
    /// One agent by its name, for tasks that already have one.
    fn find(&self, name: &AgentName) -> Option<Arc<Hosted>>;
    /// All agents, in the order of their configuration.
    fn agents(&self) -> Vec<Arc<Hosted>>;
}

/// An agent at its address.
pub struct Hosted {
    /// Its name in addresses.
    pub name: AgentName,
    /// What it says of itself.
    pub manifest: Manifest,
    /// How it is served.
    pub switches: Switches,
    pub(crate) agent: Box<dyn DynAgent>,
    pub(crate) running: AtomicUsize,
}

/// How an agent is served, where clients differ in what they expect.
#[derive(Clone, Debug)]
pub struct Switches {
    /// Whether a v0.3 send that does not say waits for the end.
    pub v03_blocking: bool,
    /// Whether v0.3 streams end when the agent waits for somebody.
    pub v03_close_on_interrupt: bool,
    /// Whether v1.0 message streams end when the agent asks.
    pub close_on_input_required: bool,
    /// Whether a message id seen before means the same message.
    pub dedupe_message_id: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            v03_blocking: true,
            v03_close_on_interrupt: true,
            close_on_input_required: true,
            dedupe_message_id: false,
        }
    }
}

impl Hosted {
    /// An agent under a name.
    pub fn new(name: impl Into<AgentName>, agent: impl Agent) -> Self {
        Self {
            name: name.into(),
            manifest: agent.manifest(),
            switches: Switches::default(),
            agent: Box::new(agent),
            running: AtomicUsize::new(0),
        }
    }

    /// The same, served differently.
    #[must_use]
    pub fn switches(mut self, switches: Switches) -> Self {
        self.switches = switches;
        self
    }
}

impl std::fmt::Debug for Hosted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Hosted").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A fixed list of agents.
#[derive(Debug)]
pub struct FixedDirectory {
    agents: Vec<Arc<Hosted>>,
    root: Option<AgentName>,
}

impl FixedDirectory {
    /// The agents and the one that answers at the root: the configured one, else the only one, else `guide`.
    pub fn new(agents: Vec<Hosted>, default_agent: Option<AgentName>) -> Self {
        let guide = AgentName::from("guide");
        let root = match (default_agent, agents.as_slice()) {
            (Some(name), _) => Some(name),
            (None, [only]) => Some(only.name.clone()),
            (None, many) => many.iter().any(|hosted| hosted.name == guide).then_some(guide),
        };
        Self { agents: agents.into_iter().map(Arc::new).collect(), root }
    }
}

impl Directory for FixedDirectory {
    fn resolve(&self, address: &Address, caller: &Caller, _message: Option<&Message>) -> Result<Arc<Hosted>, Error> {
        let name = match address {
            Address::Root => self.root.as_ref(),
            Address::Agent(name) => Some(name),
        };
        let Some(hosted) = name.and_then(|name| self.find(name)) else {
            let visible = self.agents.iter().filter(|hosted| caller.scopes.agents.allows(&hosted.name));
            let known = visible.map(|hosted| hosted.name.to_string()).collect();
            return Err(Error::AgentNotFound { asked: address.as_str().to_owned(), known });
        };
        if !caller.scopes.agents.allows(&hosted.name) {
            return Err(Error::Forbidden(hosted.name.to_string()));
        }
        Ok(hosted)
    }

    fn find(&self, name: &AgentName) -> Option<Arc<Hosted>> {
        self.agents.iter().find(|hosted| hosted.name == *name).cloned()
    }

    fn agents(&self) -> Vec<Arc<Hosted>> {
        self.agents.clone()
    }
}
