//! Command-line agents as configured, and the children they start.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use switchboard_cli_agents::adapters::{
    Acp, Adapter, ApprovalPattern, Declared, DeclaredError, FieldError, GenericOptions, Input, Output, Permissions,
};
use switchboard_cli_agents::process::{Children, ChildrenOptions, OutputLimits, User};
use switchboard_cli_agents::{
    ByDifficulty, Classifier, CliAgent, INTERRUPT_TIMEOUT, ServerAccess, Settings, SharedResources, SkillSettings,
    Worker, Workers, WorktreePolicy, exec_child,
};
use switchboard_engine::Engine;
use switchboard_host::StartError;
use switchboard_host::config::regular_file;
use switchboard_host::serve::{Lifecycle, ServerParts};
use switchboard_server::Front;
use tokio_util::sync::CancellationToken;

use crate::config::cli_agent::cli::Cli;
use crate::config::cli_agent::permission_checks::RuleTargets;
use crate::config::cli_agent::profiles::Profile;
use crate::config::cli_agent::{self, Worktree, generic};

/// Between the two signals that end a program.
const GRACE: Duration = Duration::from_secs(2);

/// The command-line agents of a server.
#[derive(Clone)]
pub struct Programs {
    shared: Arc<SharedResources>,
    worktrees: PathBuf,
    /// How programs find this server.
    server: ServerAccess,
    agents: Arc<Mutex<ProgramAgents>>,
}

/// The agents by their names, and the kernel once it has started.
#[derive(Default)]
struct ProgramAgents {
    engine: Option<Engine>,
    by_name: BTreeMap<String, ProgramAgent>,
}

struct ProgramAgent {
    agent: Arc<CliAgent>,
    /// Ends what runs beside its tasks.
    removed: CancellationToken,
}

impl Programs {
    /// Ends what an earlier server has left, and makes ready to start programs.
    pub fn open(parts: &ServerParts) -> Result<Self, StartError> {
        let (data_dir, clock) = (&parts.data_dir, Arc::clone(&parts.clock));
        let certificate =
            parts.config.server.tls.files().and_then(|(certificate, _)| std::path::absolute(certificate).ok());
        let server = ServerAccess { url: parts.local_url.clone(), certificate };
        let options = children_options(data_dir.join("children"));
        keep_memory_private();
        let (children, orphans) = Children::open(options).map_err(StartError::Children)?;
        if orphans.ended > 0 {
            tracing::warn!(ended = orphans.ended, "programs that an earlier server had started were still running");
        }
        let (shared, worktrees) = (SharedResources::new(children, clock), data_dir.join("worktrees"));
        Ok(Self { shared, worktrees, server, agents: Arc::default() })
    }

    /// Adds an agent, or replaces the one of that name; also while the server runs. Settings that cannot be are refused
    /// before anything is replaced, and nothing that follows refuses the definition.
    pub fn add(&self, name: &str, agent: &cli_agent::CliAgent) -> Result<Arc<CliAgent>, StartError> {
        let problem =
            |error: AgentSettingsError| StartError::Agent { name: name.to_owned(), problem: error.to_string() };
        let settings = Settings { server: Some(self.server.clone()), ..settings(name, agent).map_err(problem)? };
        let agent = Arc::new(CliAgent::new(settings, self.shared.clone(), self.worktrees.join(name)));
        let added = ProgramAgent { agent: agent.clone(), removed: CancellationToken::new() };
        let mut agents = self.agents.lock();
        if let Some(engine) = &agents.engine {
            added.start(engine);
        }
        if let Some(before) = agents.by_name.insert(name.to_owned(), added) {
            before.removed.cancel();
        }
        Ok(agent)
    }

    /// Removes an agent. Its turns go on to their end; its worktrees are removed by the next start.
    pub fn remove(&self, name: &str) {
        if let Some(removed) = self.agents.lock().by_name.remove(name) {
            removed.removed.cancel();
        }
    }

    /// Folders for worktrees of agents that are not served any more.
    fn folders_of_removed_agents(&self) -> Vec<PathBuf> {
        let folders = std::fs::read_dir(&self.worktrees).into_iter().flatten().flatten();
        let agents = self.agents.lock();
        let is_served = |name: &OsStr| agents.by_name.keys().any(|served| name == served.as_str());
        folders.filter(|folder| !is_served(&folder.file_name())).map(|folder| folder.path()).collect()
    }
}

impl ProgramAgent {
    /// Looks at what is installed and tidies up, until the agent is removed or replaced, or the server stops.
    fn start(&self, engine: &Engine) {
        let (agent, engine, removed) = (self.agent.clone(), engine.clone(), self.removed.clone());
        tokio::spawn(async move {
            let stop = engine.closing().clone();
            let looking_and_tidying = async { tokio::join!(agent.check_versions(), agent.sweep_periodically(&engine)) };
            stop.run_until_cancelled(removed.run_until_cancelled(looking_and_tidying)).await
        });
    }
}

impl Lifecycle for Programs {
    /// Looks at what is installed and tidies up, beside the serving.
    fn start<'a>(&'a self, engine: &'a Engine) -> BoxFuture<'a, Result<Vec<Arc<dyn Front>>, StartError>> {
        let mut agents = self.agents.lock();
        agents.by_name.values().for_each(|agent| agent.start(engine));
        agents.engine = Some(engine.clone());
        drop(agents);
        for folder in self.folders_of_removed_agents() {
            let (shared, engine) = (self.shared.clone(), engine.clone());
            tokio::spawn(async move {
                let stop = engine.closing().clone();
                stop.run_until_cancelled(shared.sweep_removed_agent(folder, &engine)).await
            });
        }
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.shared.children().close())
    }
}

/// Why an agent cannot be what its configuration says.
#[derive(Debug, thiserror::Error)]
pub enum AgentSettingsError {
    /// The file that describes its program is no description.
    #[error(transparent)]
    Declaration(#[from] DeclaredError),
    /// Something else; what would be right stands after the last colon.
    #[error("{0}")]
    Other(String),
}

impl AgentSettingsError {
    /// Each problem, with its fix.
    pub fn each(&self) -> Vec<(String, &str)> {
        let of_field = |file: &str, problem: &FieldError| match problem.field.is_empty() {
            true => format!("{file}: {}", problem.wrong),
            false => format!("{file}: {}: {}", problem.field, problem.wrong),
        };
        match self {
            Self::Declaration(DeclaredError { file, problems }) => {
                problems.iter().map(|problem| (of_field(file, problem), problem.right.as_str())).collect()
            }
            Self::Other(text) => {
                let (wrong, right) = text.rsplit_once(": ").unwrap_or((text, ""));
                vec![(wrong.to_owned(), right)]
            }
        }
    }
}

impl From<String> for AgentSettingsError {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

/// How a server starts programs.
pub fn children_options(ledger: PathBuf) -> ChildrenOptions {
    let helper = vec![OsString::from("/proc/self/exe"), OsString::from(exec_child::NAME)];
    ChildrenOptions { helper, ledger, grace: GRACE, exclusive: true }
}

/// An agent's settings, from its configuration.
pub fn settings(name: &str, agent: &cli_agent::CliAgent) -> Result<Settings, AgentSettingsError> {
    let (workers, skills) = (workers(agent)?, skills(agent)?);
    let user = agent.user.as_deref().map(User::find).transpose().map_err(|error| error.to_string())?;
    Ok(Settings {
        name: name.to_owned(),
        workers,
        cwd: agent.cwd.clone(),
        repos: agent.repos.clone(),
        worktree: match agent.worktree {
            Worktree::Off => WorktreePolicy::Off,
            Worktree::Keep => WorktreePolicy::Keep,
            Worktree::Remove => WorktreePolicy::Remove,
        },
        repo_lock: agent.repo_lock,
        env: agent.env.as_ref().map(|env| env.iter().map(|name| name.as_str().to_owned()).collect()),
        server: None,
        user,
        permissions: agent.permissions.rules(),
        skills,
        approval_expiry: agent.permissions.expiry.duration(),
        timeout: agent.timeout.duration(),
        idle: agent.idle.duration(),
        interrupt_timeout: INTERRUPT_TIMEOUT,
        output: OutputLimits {
            line: agent.limits.line.length(),
            stderr: agent.limits.stderr.length(),
            output: agent.limits.output.bytes(),
        },
        events: agent.limits.events.get() as u64,
        context: agent.context,
    })
}

/// Who works, from an agent's configuration and the file that describes its program, if there is one.
pub fn workers(agent: &cli_agent::CliAgent) -> Result<Workers, AgentSettingsError> {
    permitted_workers(agent, &agent.permissions.rules())
}

/// What differs for the skills of an agent that have permissions of their own.
pub fn skills(agent: &cli_agent::CliAgent) -> Result<BTreeMap<String, SkillSettings>, AgentSettingsError> {
    let skill = |(name, permissions): (&String, &cli_agent::permissions::Permissions)| {
        let permissions = permissions.rules();
        let workers = permitted_workers(agent, &permissions)?;
        Ok((name.clone(), SkillSettings { permissions, workers }))
    };
    agent.skill_permissions.iter().map(skill).collect()
}

fn permitted_workers(agent: &cli_agent::CliAgent, permissions: &Permissions) -> Result<Workers, AgentSettingsError> {
    let worker = |profile: &Profile| worker(agent, profile, permissions);
    let workers = match &agent.profiles {
        None => Workers::One(worker(&Profile::default())?),
        Some(profiles) => Workers::ByDifficulty(Box::new(ByDifficulty {
            classifier: Classifier::new(profiles.complex.keywords.as_deref(), profiles.routine.keywords.as_deref()),
            complex: worker(&profiles.complex)?,
            mid: worker(&profiles.mid)?,
            routine: worker(&profiles.routine)?,
        })),
    };
    if agent.adapter.is_some() {
        check_rules(&workers, permissions)?;
    }
    Ok(workers)
}

/// Refuses rules that could never be about a tool. Of a described program that is known only once its file was read.
fn check_rules(workers: &Workers, permissions: &Permissions) -> Result<(), String> {
    let targets = RuleTargets::of(workers.all().into_iter().map(|worker| &*worker.adapter));
    match targets.unknown_names(permissions).chain(targets.unreported_commands(permissions)).next() {
        Some(problem) => Err(problem.within("permissions").to_string()),
        None => Ok(()),
    }
}

/// What does the tasks of a profile. The keys of the agent itself are about its own program alone.
fn worker(
    agent: &cli_agent::CliAgent,
    profile: &Profile,
    permissions: &Permissions,
) -> Result<Worker, AgentSettingsError> {
    let cli = profile.cli.unwrap_or(agent.cli);
    let base = Some(agent).filter(|agent| agent.cli == cli);
    let base_args = base.into_iter().flat_map(|agent| agent.args.iter());
    let worker = Worker {
        adapter: adapter(agent, cli, permissions.may_ask())?,
        program: profile.program.clone().or_else(|| base?.program.clone()),
        args: base_args.chain(profile.args.iter()).map(str::to_owned).collect(),
        model: profile.model.clone().or_else(|| base?.model.clone()),
        models: profile.models.clone().or_else(|| Some(base?.models.clone())).unwrap_or_default(),
        effort: profile.effort.clone().or_else(|| base?.effort.clone()),
        efforts: profile.efforts.clone().or_else(|| Some(base?.efforts.clone())).unwrap_or_default(),
    };
    let checked = worker.adapter.check_args(worker.program.as_deref(), permissions, &worker.args);
    checked.map_err(|error| error.to_string())?;
    check_told(agent, &worker)?;
    Ok(worker)
}

/// Refuses a model or an effort that a described program has no argument for.
fn check_told(agent: &cli_agent::CliAgent, worker: &Worker) -> Result<(), String> {
    let Some(file) = &agent.adapter else { return Ok(()) };
    let told = worker.adapter.told();
    for (key, is_set, is_told, word) in [
        ("model", worker.model.is_some(), told.model, "model"),
        ("models", !worker.models.is_empty(), told.model, "model"),
        ("effort", worker.effort.is_some(), told.effort, "effort"),
        ("efforts", !worker.efforts.is_empty(), told.effort, "effort"),
    ] {
        if is_set && !is_told {
            let right = format!("remove {key}, or write {{{word}}} in start.args of {}", file.display());
            return Err(format!("{key}: {} has no argument for it: {right}", worker.name()));
        }
    }
    Ok(())
}

/// How a program of an agent is spoken to.
pub(crate) fn adapter(
    agent: &cli_agent::CliAgent,
    cli: Cli,
    asks: bool,
) -> Result<Arc<dyn Adapter>, AgentSettingsError> {
    if let Some(known) = cli.adapter(asks) {
        return Ok(known);
    }
    if let Some(file) = agent.adapter.as_ref().filter(|_| cli == Cli::Generic) {
        return Ok(Arc::new(described(file)?));
    }
    let command = agent.command.as_ref().ok_or("command: names no program".to_owned())?;
    let program = command.program.to_str().ok_or("command: the program's name must be UTF-8".to_owned())?.to_owned();
    let args: Vec<String> = command.args.iter().map(str::to_owned).collect();
    Ok(match cli {
        Cli::Acp => Arc::new(Acp::any(cli.name(), program, args)),
        _ => Arc::new(generic(agent, program, args)?),
    })
}

/// A program that a file describes.
fn described(file: &Path) -> Result<Declared, AgentSettingsError> {
    let shown = file.display().to_string();
    let unreadable = |error| format!("adapter: {shown} cannot be read ({error}): name a file that the server may read");
    let yaml = regular_file::read_to_string(file).map_err(unreadable)?;
    let declared = Declared::parse(&yaml, &shown)?;
    let name = &declared.about().name;
    if Cli::named(name).is_some() {
        // Tasks remember whose session they hold by this name.
        return Err(AgentSettingsError::Other(format!(
            "adapter: {shown}: name: \"{name}\" is the name of a kind that is known: choose another one"
        )));
    }
    Ok(declared)
}

fn generic(agent: &cli_agent::CliAgent, program: String, args: Vec<String>) -> Result<Declared, String> {
    let questions = match &agent.approval {
        Some(generic::Approval { pattern: Some(pattern), yes, no, .. }) => {
            Some(ApprovalPattern::new(pattern, yes, no).map_err(|error| format!("approval: {error}"))?)
        }
        _ => None,
    };
    let options = GenericOptions {
        command: std::iter::once(program).chain(args).collect(),
        input: match (agent.input, agent.separator) {
            (generic::Input::Stdin, _) => Input::Stdin,
            (generic::Input::Argument, generic::Separator::Dashes) => Input::Argument,
            (generic::Input::Argument, generic::Separator::None) => Input::BareArgument,
        },
        output: match agent.output {
            generic::Output::Text => Output::Text { questions },
            generic::Output::Jsonl => Output::Jsonl { asks: agent.approval.is_some() },
        },
    };
    Declared::generic(options).map_err(|error| error.to_string())
}

/// Programs of the same account may not look into this process: its environment holds what theirs leaves out.
fn keep_memory_private() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "programs of this account can read the environment of this server");
    }
}
