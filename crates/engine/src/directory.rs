//! The agent directory: which agent serves a request. The kernel ships a fixed list; a hub can route instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use switchboard_a2a::{Json, Message, PushPayload, RestFiles};
use switchboard_admission::Counter;

use crate::agent::{Agent, DynAgent, WrappedAgent};
use crate::caller::Caller;
use crate::delegation::AgentDelegation;
use crate::error::Error;
use crate::ids::{AgentName, CallerId};
use crate::manifest::{Execution, Manifest};
use crate::result_check::ResultCheck;
use crate::reviewed_skills::ReviewedSkills;
use crate::routing_hints::RoutingHints;

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
            Self::Agent(name) => name == agent && !agent.is_own(),
        }
    }
}

/// What a request says that its agent can be picked by.
#[derive(Clone, Copy, Debug)]
pub struct RoutingRequest<'a> {
    /// The message.
    pub message: &'a Message,
    /// The caller's routing hints.
    pub hints: &'a RoutingHints,
    /// The agent of the caller's newest task in the same conversation.
    pub last_agent: Option<&'a AgentName>,
    /// How that one was picked; only where it is the server's own and the decision says what it does.
    pub last_decision: Option<&'a Json>,
}

/// The agent that was picked.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The agent.
    pub hosted: Arc<Hosted>,
    /// How it was picked, if that is worth telling: stored with the message, shown to the caller and to the agent.
    pub decision: Option<Json>,
    /// A cooldown that its new task takes, or is refused by.
    pub cooldown: Option<CooldownRule>,
}

/// Work that is not done again for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CooldownRule {
    /// What the work is: the skill, and what it is about.
    pub key: String,
    /// For how long it is not done again.
    pub window: Duration,
}

impl Resolved {
    /// An agent, without anything to tell about it.
    pub fn new(hosted: Arc<Hosted>) -> Self {
        Self { hosted, decision: None, cooldown: None }
    }
}

/// Knows the agents.
pub trait Directory: Send + Sync + 'static {
    /// The agent that serves a request; what it asks is there to route by. Asked once per message, and not for
    /// follow-ups, which go to their task's agent. It does no I/O. An agent of the server's own ([`AgentName::is_own`]) is
    /// not found by its name.
    fn resolve(&self, address: &Address, caller: &Caller, asked: Option<RoutingRequest<'_>>)
    -> Result<Resolved, Error>;
    /// One agent by its name, the server's own included, for tasks that already have one.
    fn find(&self, name: &AgentName) -> Option<Arc<Hosted>>;
    /// An agent that was removed: it gets nothing new, and answers at its address until its last task has ended.
    fn draining(&self, _name: &AgentName) -> Option<Arc<Hosted>> {
        None
    }
    /// All agents but the server's own, in the order of their configuration.
    fn agents(&self) -> Vec<Arc<Hosted>>;
    /// Whether an agent can be reached, as far as is known; one of this process always can.
    fn is_up(&self, _name: &AgentName) -> bool {
        true
    }
    /// Hears of a decision of [`resolve`](Self::resolve) whose new task has begun.
    fn accepted(&self, _decision: &Json) {}
    /// Hears of a message that was refused by the cooldown of what [`resolve`](Self::resolve) has picked.
    fn refused_by_cooldown(&self, _caller: &CallerId, _agent: &AgentName, _key: &str) {}
}

/// An agent at its address: its name and its counters, which stay, and how it is served, which can be replaced.
pub struct Hosted {
    /// Its name in addresses.
    pub name: AgentName,
    /// Read for every message and rarely written.
    served: RwLock<Arc<Served>>,
    /// [`Switches::max_running`] of what is served, which every permit asks for.
    max_running: AtomicUsize,
    pub(crate) running: Counter,
    /// Of the running turns, those that wait for an answer and keep their permit meanwhile.
    pub(crate) asking: Counter,
    /// Turns that have begun and wait for others without a permit.
    pub(crate) released: Counter,
    /// Above zero during recovery of an earlier process's tasks, so that no other turn begins before that.
    pub(crate) recovering: Counter,
}

/// An agent and how it is served. A turn keeps the one it began with.
pub struct Served {
    /// What it says of itself.
    pub manifest: Manifest,
    /// How it is served.
    pub switches: Switches,
    /// What its results are checked by.
    pub(crate) result_check: Option<Arc<dyn ResultCheck>>,
    /// What a message to one of its tasks cannot ask for by itself.
    pub(crate) reviewed_skills: ReviewedSkills,
    pub(crate) agent: Box<dyn DynAgent>,
}

impl Served {
    /// An agent, served as usual.
    pub fn new(agent: impl Agent) -> Self {
        let manifest = agent.manifest();
        let (switches, reviewed_skills) = (Switches::default(), ReviewedSkills::None);
        Self { manifest, switches, result_check: None, reviewed_skills, agent: Box::new(agent) }
    }

    /// The same, served differently.
    #[must_use]
    pub fn switches(self, switches: Switches) -> Self {
        Self { switches, ..self }
    }

    /// The same, with results that are checked before a task ends COMPLETED.
    #[must_use]
    pub fn checked(self, check: Arc<dyn ResultCheck>) -> Self {
        Self { result_check: Some(check), ..self }
    }

    /// The same with an agent around it, which asks a reviewer before these skills.
    #[must_use]
    pub fn reviewed<A: Agent>(self, skills: ReviewedSkills, wrap: impl FnOnce(WrappedAgent) -> A) -> Self {
        Self { reviewed_skills: skills, agent: Box::new(wrap(WrappedAgent(self.agent))), ..self }
    }

    /// Whether it has a skill of that id.
    pub fn has_skill(&self, id: &str) -> bool {
        self.manifest.skills.iter().any(|skill| skill.id == id)
    }
}

/// How an agent is served, where clients differ in what they expect.
#[derive(Clone, Debug)]
pub struct Switches {
    /// Whether a v0.3 send that does not say waits for the end.
    pub v03_blocking: bool,
    /// Whether v0.3 streams end at an interrupted state.
    pub v03_close_on_interrupt: bool,
    /// How often files are encoded as base64 over v0.3 REST.
    pub v03_rest_files: RestFiles,
    /// Whether v1.0 message streams end when the agent asks.
    pub close_on_input_required: bool,
    /// Whether a message id seen before means the same message.
    pub dedupe_message_id: bool,
    /// What webhooks are sent, if they do not say so themselves and not what their version says.
    pub webhook_payload: Option<PushPayload>,
    /// Which events are delivered to webhooks.
    pub webhook_events: WebhookEvents,
    /// Turns of this agent at the same time, if fewer than the kernel's own limit for an agent.
    pub max_running: Option<usize>,
    /// Which agents it may call, and how far.
    pub delegation: AgentDelegation,
}

/// Which events are delivered to webhooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebhookEvents {
    /// Every change of status, and in version 1.0 every artifact update.
    #[default]
    All,
    /// Every change of status.
    Status,
    /// Only terminal and interrupted states.
    Stops,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            v03_blocking: true,
            v03_close_on_interrupt: true,
            v03_rest_files: RestFiles::Auto,
            close_on_input_required: true,
            dedupe_message_id: false,
            webhook_payload: None,
            webhook_events: WebhookEvents::All,
            max_running: None,
            delegation: AgentDelegation::default(),
        }
    }
}

impl Hosted {
    /// An agent under a name.
    pub fn new(name: impl Into<AgentName>, agent: impl Agent) -> Self {
        Self::serving(name, Served::new(agent))
    }

    /// The same, served in a way of its own.
    pub fn serving(name: impl Into<AgentName>, served: Served) -> Self {
        Self {
            name: name.into(),
            max_running: AtomicUsize::new(own_limit(&served)),
            served: RwLock::new(Arc::new(served)),
            running: Counter::default(),
            asking: Counter::default(),
            released: Counter::default(),
            recovering: Counter::default(),
        }
    }

    /// The agent as it is served now.
    pub fn served(&self) -> Arc<Served> {
        self.served.read().clone()
    }

    /// Serves another agent under the same name from the next turn on. Turns that run keep theirs, and both count against
    /// the same limits.
    pub fn replace(&self, served: Served) {
        let max_running = own_limit(&served);
        let mut current = self.served.write();
        self.max_running.store(max_running, Ordering::Relaxed);
        *current = Arc::new(served);
    }

    /// Where its next turn works.
    pub(crate) fn execution(&self) -> Execution {
        self.served.read().manifest.execution
    }

    /// How many of its turns may run, where the kernel lets an agent have `limit`.
    pub(crate) fn max_running(&self, limit: usize) -> usize {
        self.max_running.load(Ordering::Relaxed).min(limit)
    }

    /// Why a turn of this agent waits, if the limit of the agent itself is reached.
    pub(crate) fn full(&self, limit: usize) -> Option<String> {
        let cap = self.max_running(limit);
        if self.running.held() < cap {
            return None;
        }
        let taken = if cap == 1 {
            "the one slot of this agent is taken".to_owned()
        } else {
            format!("all {cap} slots of this agent are taken")
        };
        Some(match (cap, self.asking.held()) {
            (_, 0) => taken,
            (1, _) => format!("{taken} by a task that waits for an answer"),
            (_, 1) => format!("{taken}, one of them by a task that waits for an answer"),
            (_, asking) => format!("{taken}, {asking} of them by tasks that wait for answers"),
        })
    }
}

impl std::fmt::Debug for Hosted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Hosted").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The agent's own limit of running turns.
fn own_limit(served: &Served) -> usize {
    served.switches.max_running.unwrap_or(usize::MAX)
}

/// No agent's name is longer.
const LONGEST_NAME: usize = 63;

/// A fixed list of agents. At the root, a target picks the agent by name; else a conversation stays with its agent, if
/// that has the skill; else the skill picks one that has it, the agent of the root before all others; else the agent of
/// the root serves.
#[derive(Debug)]
pub struct FixedDirectory {
    agents: Vec<Arc<Hosted>>,
    /// The server's own.
    own: Vec<Arc<Hosted>>,
    root: Option<AgentName>,
}

impl FixedDirectory {
    /// The agents and the one that answers at the root: the configured one, else the only one, else `guide`.
    pub fn new(agents: Vec<Hosted>, default_agent: Option<AgentName>) -> Self {
        Self::shared(agents.into_iter().map(Arc::new).collect(), default_agent)
    }

    /// The same with agents that other lists have too.
    pub fn shared(agents: Vec<Arc<Hosted>>, default_agent: Option<AgentName>) -> Self {
        let guide = AgentName::from("guide");
        let (own, agents): (Vec<_>, Vec<_>) = agents.into_iter().partition(|hosted| hosted.name.is_own());
        let root = match (default_agent, agents.as_slice()) {
            (Some(name), _) => Some(name),
            (None, [only]) => Some(only.name.clone()),
            (None, many) => many.iter().any(|hosted| hosted.name == guide).then_some(guide),
        };
        Self { agents, own, root }
    }

    /// The first of the agents asked for that is here and that the caller may use.
    fn first_of(&self, targets: &[AgentName], caller: &Caller) -> Result<Arc<Hosted>, Error> {
        let mut forbidden = None;
        for hosted in targets.iter().filter_map(|name| self.named(name)) {
            if caller.scopes.agents.allows(&hosted.name) {
                return Ok(hosted);
            }
            forbidden.get_or_insert(hosted);
        }
        Err(match (forbidden, targets) {
            (Some(hosted), _) => Error::Forbidden(hosted.name.to_string()),
            // Names are the caller's to choose, and need not be short.
            (None, [first, ..]) => {
                self.agent_not_found(&first.as_str().chars().take(LONGEST_NAME).collect::<String>(), caller)
            }
            (None, []) => self.agent_not_found("", caller),
        })
    }

    /// An agent that a caller has named.
    fn named(&self, name: &AgentName) -> Option<Arc<Hosted>> {
        self.agents.iter().find(|hosted| hosted.name == *name).cloned()
    }

    /// The agent at the root if it has the skill, else the first by name that has it; only those the caller may use.
    fn skilled(&self, skill: &str, caller: &Caller) -> Option<Arc<Hosted>> {
        let able = self.agents.iter().filter(|hosted| hosted.served.read().has_skill(skill));
        let able = able.filter(|hosted| caller.scopes.agents.allows(&hosted.name));
        able.min_by_key(|hosted| (self.root.as_ref() != Some(&hosted.name), &hosted.name)).cloned()
    }

    /// The agent that the conversation was with, if the caller may still use it and it has the skill.
    fn still_serving(&self, name: &AgentName, skill: Option<&str>, caller: &Caller) -> Option<Arc<Hosted>> {
        let hosted = self.named(name).filter(|hosted| caller.scopes.agents.allows(&hosted.name))?;
        skill.is_none_or(|skill| hosted.served.read().has_skill(skill)).then_some(hosted)
    }

    fn agent_not_found(&self, asked: &str, caller: &Caller) -> Error {
        let visible = self.agents.iter().filter(|hosted| caller.scopes.agents.allows(&hosted.name));
        let known = visible.map(|hosted| hosted.name.to_string()).collect();
        Error::AgentNotFound { asked: asked.to_owned(), known }
    }
}

impl Directory for FixedDirectory {
    fn resolve(
        &self,
        address: &Address,
        caller: &Caller,
        asked: Option<RoutingRequest<'_>>,
    ) -> Result<Resolved, Error> {
        let hints = asked.map(|asked| asked.hints).filter(|_| *address == Address::Root);
        let hosted = match (address, hints) {
            (_, Some(hints)) if !hints.targets.is_empty() => {
                return self.first_of(&hints.targets, caller).map(Resolved::new);
            }
            (Address::Agent(name), _) => self.named(name),
            (Address::Root, hints) => {
                let skill = hints.and_then(|hints| hints.skill.as_deref());
                let last = asked.and_then(|asked| asked.last_agent);
                last.and_then(|name| self.still_serving(name, skill, caller))
                    .or_else(|| self.skilled(skill?, caller))
                    .or_else(|| self.named(self.root.as_ref()?))
            }
        };
        let hosted = hosted.ok_or_else(|| self.agent_not_found(address.as_str(), caller))?;
        if caller.scopes.agents.allows(&hosted.name) {
            Ok(Resolved::new(hosted))
        } else {
            // Empty at the root, where the caller has not named it.
            Err(Error::Forbidden(address.as_str().to_owned()))
        }
    }

    fn find(&self, name: &AgentName) -> Option<Arc<Hosted>> {
        self.named(name).or_else(|| self.own.iter().find(|hosted| hosted.name == *name).cloned())
    }

    fn agents(&self) -> Vec<Arc<Hosted>> {
        self.agents.clone()
    }
}
