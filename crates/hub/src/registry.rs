//! The registry: which agents there are, where they come from, and whether they can be reached. It is the directory that
//! the kernel finds agents in, and follows the files and registrations while the server runs.

mod apply;
mod breaker;
mod card_policies;
mod file_definitions;
mod first_served;
mod journal;
mod live_tasks;
mod policies;
mod probe;
mod reachability;
mod registrations;
mod reload;
mod remote_state;
mod roster;
mod rows;
mod skills;
mod tombstones;
mod variables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use switchboard_engine::{
    Address, AgentName, Caller, Directory, Engine, Error, Hosted, Resolved, RoutingRequest, Served,
};
use switchboard_fleet::config::agent_files::AgentFiles;
use switchboard_fleet::config::agents::Entry;
use switchboard_fleet::programs::Programs;
use switchboard_fleet::remote_client::RemoteClients;
use switchboard_host::StartError;
use switchboard_host::config::Overrides;
use switchboard_host::serve::{FirstServed, ServerParts};
use tokio::sync::Notify;

pub use breaker::{
    BreakerOpen, BreakerPermit, BreakerSettings, BreakerState, CircuitBreaker, RequestOutcome, RequestSource,
};
pub use reachability::{LastProbe, ProbeSettings, Reachability, ReachabilityChange};
pub use registrations::{RegistrationError, Removal};
pub(crate) use registrations::{all_registrations, is_secret_parameter};
pub use remote_state::{CardChange, KnownCard, Observed, RemoteState};
pub use roster::{EntrySource, Roster, RosterEntry, RosterProblem};
pub use skills::{SkillSource, reconcile};

use self::apply::Definitions;
use self::journal::JournalQueue;
use self::variables::ListedVariables;
use crate::remote::serve;
use crate::routing::{AgentSignals, Availability, Experiment, RoutingSignals, Track};

/// Serves a remote agent under its name.
pub type RemoteFactory = Arc<dyn Fn(&Arc<RemoteState>) -> Served + Send + Sync>;

/// The folder of a workspace, and the variables that fill in `${VAR}` in its files.
#[derive(Clone, Debug)]
pub struct WorkspaceFolder {
    pub path: PathBuf,
    pub environment: BTreeMap<String, String>,
}

/// Where agents come from while the server runs.
pub struct AgentSources {
    /// The workspace folder.
    pub folder: PathBuf,
    /// Its environment fills in `${VAR}`.
    pub overrides: Overrides,
    /// Has the files read at once.
    pub reload_now: Arc<Notify>,
    /// The hub's own agents, which are always there.
    pub own: Vec<Hosted>,
}

/// The agents of a server.
pub struct Registry {
    parts: ServerParts,
    workspace: WorkspaceFolder,
    programs: Programs,
    clients: RemoteClients,
    variables: ListedVariables,
    serve_remote: RemoteFactory,
    own: Vec<Arc<Hosted>>,
    roster: RwLock<Arc<Roster>>,
    /// Locked while agents change.
    definitions: tokio::sync::Mutex<Definitions>,
    files: Arc<Mutex<AgentFiles>>,
    reload_now: Arc<Notify>,
    journal: Arc<JournalQueue>,
    pub(crate) signals: RoutingSignals,
    /// The row that the projector has read and written up to: what is owed for the tasks before it is a job by now.
    projected: AtomicI64,
    /// The row by which the last task of a removed agent had ended.
    ended_by: Mutex<BTreeMap<AgentName, i64>>,
    /// Agents elsewhere that were not served before, until the banner of the start has taken them.
    first_served: Mutex<Option<Vec<FirstServed>>>,
    /// Agents of whose earlier cards something is stored that counts.
    stored_counted: Mutex<BTreeSet<AgentName>>,
    /// Once the kernel has started.
    engine: RwLock<Option<Engine>>,
}

impl Registry {
    /// Reads files and registrations. What is wrong with a file refuses the start.
    pub async fn open(parts: ServerParts, sources: AgentSources) -> Result<Arc<Self>, StartError> {
        let programs = Programs::open(&parts)?;
        let tasks = parts.config.limits.remote_tasks.get();
        let clients = RemoteClients::new(sources.folder.clone(), tasks).map_err(StartError::Egress)?;
        let workspace = WorkspaceFolder { path: sources.folder, environment: sources.overrides.environment };
        let files = AgentFiles::new(workspace.path.clone(), workspace.environment.clone());
        let default_agent = default_agent(&parts);
        let own: Vec<Arc<Hosted>> = sources.own.into_iter().map(Arc::new).collect();
        let registry = Arc::new(Self {
            programs,
            clients,
            variables: ListedVariables::following(&parts),
            serve_remote: serve::factory(&parts),
            roster: RwLock::new(Arc::new(Roster::new(Vec::new(), Vec::new(), &own, default_agent, Vec::new()))),
            definitions: tokio::sync::Mutex::default(),
            files: Arc::new(Mutex::new(files)),
            own,
            reload_now: sources.reload_now,
            journal: Arc::new(JournalQueue::new(Arc::clone(&parts.store))),
            signals: RoutingSignals::default(),
            projected: AtomicI64::new(0),
            ended_by: Mutex::default(),
            stored_counted: Mutex::default(),
            first_served: Mutex::new(Some(Vec::new())),
            engine: RwLock::new(None),
            workspace,
            parts,
        });
        registry.load_registrations().await.map_err(StartError::Store)?;
        registry.read_files().await;
        registry.check_built().await?;
        Ok(registry)
    }

    /// An agent of a file that cannot be served refuses the start; later it only leaves the others as they are.
    async fn check_built(self: &Arc<Self>) -> Result<(), StartError> {
        let roster = self.roster();
        let definitions = self.definitions.lock().await;
        for entry in definitions.files.entries.iter().filter(|entry| roster.entry(entry.name().as_str()).is_none()) {
            match entry {
                Entry::Hosted(agent) => self.serve_hosted(agent).map(|_| ())?,
                Entry::Remote(agent) => {
                    let name = agent.name.to_string();
                    let built = self.remote_state(&AgentName::from(name.as_str()), agent, false, None, None);
                    built.map(|_| ()).map_err(|problem| StartError::Agent { name, problem })?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn parts(&self) -> &ServerParts {
        &self.parts
    }

    pub(crate) fn workspace(&self) -> WorkspaceFolder {
        self.workspace.clone()
    }

    /// Takes how far the projector has come.
    pub(crate) fn projected(&self, row: i64) {
        self.projected.fetch_max(row, Ordering::AcqRel);
    }

    /// Whether what an alert is about is over, as this process sees the agent now; nothing that it does not know counts.
    pub(crate) fn is_over(&self, alert: &str, agent: &str) -> bool {
        let roster = self.roster();
        let remote = roster.entry(agent).and_then(|entry| entry.remote.as_ref());
        match alert {
            "agent_down" => remote
                .filter(|remote| remote.definition.serving.serve)
                .is_none_or(|remote| remote.observed.lock().reachability.is_known_to_be_up()),
            "breaker_open" => remote.is_none_or(|remote| remote.breaker.state() == BreakerState::Closed),
            _ => false,
        }
    }

    /// Whether an agent runs elsewhere, or has while it left tasks there, or is not known any more.
    pub(crate) fn may_be_remote(&self, name: &AgentName) -> bool {
        let roster = self.roster();
        !name.as_str().starts_with('~') && (roster.entry(name.as_str()).is_none() || roster.remote(name).is_some())
    }

    /// The programs of command-line agents, which start and stop with the server.
    pub fn programs(&self) -> Programs {
        self.programs.clone()
    }

    /// The agents elsewhere that the files have not served before this start. Later ones are nobody's news.
    pub fn take_first_served(&self) -> Vec<FirstServed> {
        self.first_served.lock().take().unwrap_or_default()
    }

    /// All agents as of now.
    pub fn roster(&self) -> Arc<Roster> {
        self.roster.read().clone()
    }

    /// Whether a file may have been read while it was written, and is read again in a moment.
    pub fn has_unsettled_files(&self) -> bool {
        self.files.lock().is_unsettled()
    }

    /// Follows files and remote agents until the server stops.
    pub fn start(self: &Arc<Self>, engine: &Engine) {
        *self.engine.write() = Some(engine.clone());
        let roster = self.roster();
        for (index, entry) in roster.entries.iter().filter(|entry| entry.remote.is_some()).enumerate() {
            self.start_probes(entry, first_probe_in(index));
        }
        let (following, draining) = (Arc::clone(self).follow_files(), Arc::clone(self).follow_drained());
        let closing = engine.closing().clone();
        engine.spawn(async move {
            closing.run_until_cancelled(async { tokio::join!(following, draining) }).await;
        });
        let (journal, clock, closing) =
            (Arc::clone(&self.journal), Arc::clone(&self.parts.clock), engine.closing().clone());
        engine.spawn(async move { journal.run(&*clock, &closing).await });
    }
}

/// How long the first probe of an agent waits: many agents are not probed all at once.
fn first_probe_in(index: usize) -> Duration {
    const AT_ONCE: usize = 16;
    Duration::from_millis(100).saturating_mul(u32::try_from(index / AT_ONCE).unwrap_or(u32::MAX))
}

fn default_agent(parts: &ServerParts) -> Option<AgentName> {
    parts.config.server.default_agent.as_ref().map(|name| AgentName::from(name.as_str()))
}

impl Directory for Registry {
    fn resolve(
        &self,
        address: &Address,
        caller: &Caller,
        asked: Option<RoutingRequest<'_>>,
    ) -> Result<Resolved, Error> {
        self.roster.read().directory.resolve(address, caller, asked)
    }

    fn find(&self, name: &AgentName) -> Option<Arc<Hosted>> {
        let roster = self.roster.read();
        let draining = || roster.draining.iter().find(|draining| draining.name == *name)?.hosted.clone();
        roster.directory.find(name).or_else(draining)
    }

    fn draining(&self, name: &AgentName) -> Option<Arc<Hosted>> {
        let roster = self.roster.read();
        let draining = roster.draining.iter().find(|draining| draining.name == *name && draining.was_served)?;
        draining.hosted.clone()
    }

    fn agents(&self) -> Vec<Arc<Hosted>> {
        self.roster.read().directory.agents()
    }

    fn is_up(&self, name: &AgentName) -> bool {
        let remote = self.roster.read().entry(name.as_str()).and_then(|entry| entry.remote.clone());
        remote.is_none_or(|remote| !remote.observed.lock().reachability.is_down())
    }
}

impl AgentSignals for Registry {
    fn track(&self, agent: &AgentName) -> Track {
        self.signals.track(agent)
    }

    fn availability(&self, agent: &AgentName) -> Availability {
        let Some(remote) = self.roster.read().entry(agent.as_str()).and_then(|entry| entry.remote.clone()) else {
            return Availability::Up;
        };
        if remote.observed.lock().reachability.is_down() {
            return Availability::Down;
        }
        match remote.breaker.state() {
            BreakerState::Closed => Availability::Up,
            BreakerState::HalfOpen => Availability::Probing,
            BreakerState::Open => Availability::Down,
        }
    }

    fn experiments(&self) -> Vec<Experiment> {
        self.signals.experiments()
    }
}
