//! The settings of one command-line agent.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::process::{OutputLimits, User};
use super::routing::Workers;
use super::worktree::WorktreePolicy;
use crate::adapters::{Adapter, Permissions};

/// One agent's settings.
#[derive(Clone)]
pub struct Settings {
    pub name: String,
    /// The programs that do the work.
    pub workers: Workers,
    /// Where they work, unless a request chooses a repository.
    pub cwd: PathBuf,
    /// Folders within which a request may choose a repository.
    pub repos: Vec<PathBuf>,
    /// Whether each task works in a git worktree.
    pub worktree: WorktreePolicy,
    /// Whether a task without a worktree takes the repository lock.
    pub repo_lock: bool,
    /// Variables that a child sees; without it the usual ones and the program's own.
    pub env: Option<Vec<String>>,
    /// How programs call other agents, with a token of their task, if the agent delegates to others.
    pub server: Option<ServerAccess>,
    /// The account that children run as.
    pub user: Option<User>,
    pub permissions: Permissions,
    /// What differs for a request that names one of these skills.
    pub skills: BTreeMap<String, SkillSettings>,
    /// The question timeout: how long an approval waits for its answer.
    pub approval_expiry: Duration,
    /// How long a turn may take.
    pub timeout: Option<Duration>,
    /// How long a program may be silent.
    pub idle: Option<Duration>,
    /// How long an interrupted program may take before its process tree is killed.
    pub interrupt_timeout: Duration,
    /// How much a program may write.
    pub output: OutputLimits,
    /// How many events a program may emit in one turn.
    pub events: u64,
    /// Whether a summary of the repository goes before the prompt.
    pub context: bool,
}

/// How programs of this machine reach the server.
#[derive(Clone, Debug)]
pub struct ServerAccess {
    /// Its address for clients on this machine: what goes out over a proxy would show the token to it.
    pub url: String,
    /// The file with its certificate, which the system may not trust.
    pub certificate: Option<PathBuf>,
}

/// What differs for one skill.
#[derive(Clone)]
pub struct SkillSettings {
    /// What the programs may do.
    pub permissions: Permissions,
    /// The same programs; whether one may ask decides how it is launched.
    pub workers: Workers,
}

/// A program that can do the work.
#[derive(Clone)]
pub struct Worker {
    pub adapter: Arc<dyn Adapter>,
    /// Where it is, if not on the path under its usual name.
    pub program: Option<PathBuf>,
    pub args: Vec<String>,
    pub model: Option<String>,
    /// Models that a request may choose: in the words of this program, which another one would not know.
    pub models: Vec<String>,
    pub effort: Option<String>,
    /// Efforts that a request may choose.
    pub efforts: Vec<String>,
}

/// Long enough for a program that listens to say what it has used.
pub const INTERRUPT_TIMEOUT: Duration = Duration::from_millis(500);

impl Settings {
    /// An agent with one program and everything else at its default.
    pub fn new(name: impl Into<String>, worker: Worker, cwd: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            workers: Workers::One(worker),
            cwd: cwd.into(),
            repos: Vec::new(),
            worktree: WorktreePolicy::Off,
            repo_lock: true,
            env: None,
            server: None,
            user: None,
            permissions: Permissions::default(),
            skills: BTreeMap::new(),
            approval_expiry: Duration::from_secs(60 * 60),
            timeout: Some(Duration::from_secs(30 * 60)),
            idle: Some(Duration::from_secs(5 * 60)),
            interrupt_timeout: INTERRUPT_TIMEOUT,
            output: OutputLimits { line: 16 << 20, stderr: 64 << 10, output: 256 << 20 },
            events: 100_000,
            context: false,
        }
    }

    /// The programs for a skill, and what they may do. A skill without settings is like none.
    pub(super) fn of_skill(&self, skill: Option<&str>) -> (&Workers, &Permissions) {
        match skill.and_then(|skill| self.skills.get(skill)) {
            Some(own) => (&own.workers, &own.permissions),
            None => (&self.workers, &self.permissions),
        }
    }
}

impl Worker {
    /// A program under its usual name.
    pub fn new(adapter: impl Adapter + 'static) -> Self {
        Self {
            adapter: Arc::new(adapter),
            program: None,
            args: Vec::new(),
            model: None,
            models: Vec::new(),
            effort: None,
            efforts: Vec::new(),
        }
    }

    /// What `cli:` calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.adapter.about().name
    }
}
