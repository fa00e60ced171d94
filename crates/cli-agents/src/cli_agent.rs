//! One configured command-line agent as the kernel hosts it: its card, its turns, and the clean-up of its worktrees.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::Message;
use switchboard_a2a::extension::cost::Cost;
use switchboard_admission::ExclusiveQueue;
use switchboard_engine::clock::Clock;
use switchboard_engine::{Agent, AgentError, Engine, Manifest, Park, Recovery, Skill, TaskHandle, TaskView, Turn};

use super::git::Git;
use super::process::Children;
use super::repository_locks::RepositoryLocks;
use super::repository_summary::SummaryCache;
use super::sessions::{ConversationTurn, TurnCheckpoint, conversation_queue};
use super::worktree::AgentWorktrees;
use super::{Settings, Version, is_tested};

/// How often abandoned worktrees are swept.
const SWEEP_EVERY: Duration = Duration::from_secs(5 * 60);
/// The same while tasks of an earlier server are being recovered.
const SWEEP_SOON: Duration = Duration::from_secs(1);

/// A command-line agent: settings, and the queue of each conversation.
pub struct CliAgent {
    pub(super) settings: Settings,
    pub(super) shared: Arc<SharedResources>,
    /// One turn at a time per conversation.
    pub(super) sessions: Arc<ExclusiveQueue<ConversationTurn>>,
    pub(super) worktrees: Arc<AgentWorktrees>,
}

/// Shared by all command-line agents of a server.
pub struct SharedResources {
    pub(super) children: Children,
    pub(super) clock: Arc<dyn Clock>,
    /// One turn at a time per repository, whichever agent's.
    pub(super) repositories: Arc<RepositoryLocks>,
    /// One git command at a time on a repository's list of worktrees.
    worktree_lists: Arc<ExclusiveQueue<PathBuf>>,
    pub(super) summaries: SummaryCache,
}

impl SharedResources {
    /// For agents that start these children and use this clock.
    pub fn new(children: Children, clock: Arc<dyn Clock>) -> Arc<Self> {
        super::describe_metrics();
        let repositories = Arc::new(RepositoryLocks::new(clock.clone()));
        Arc::new(Self {
            children,
            clock,
            repositories,
            worktree_lists: ExclusiveQueue::per_key(),
            summaries: SummaryCache::default(),
        })
    }

    /// Commits and removes the worktrees of an agent that is not served any more, once its tasks have ended.
    pub async fn sweep_removed_agent(&self, worktrees: PathBuf, engine: &Engine) {
        let git = Git::new(self.children.clone(), None, self.worktree_lists.clone(), worktrees.clone());
        let worktrees = AgentWorktrees::new(worktrees.clone(), worktrees);
        while worktrees.sweep(&git, engine).await > 0 {
            self.clock.sleep(SWEEP_SOON).await;
        }
    }

    /// Their children.
    #[must_use]
    pub fn children(&self) -> &Children {
        &self.children
    }
}

impl CliAgent {
    /// An agent with these settings and the folder of its worktrees.
    #[must_use]
    pub fn new(settings: Settings, shared: Arc<SharedResources>, worktrees: PathBuf) -> Self {
        // Another account cannot reach what the server keeps for itself. Two servers may use the same account.
        let folder_name = || super::worktree::short_name(worktrees.as_os_str().as_encoded_bytes());
        let own = settings.user.as_ref().map(|user| user.home.join(".switchboard/worktrees").join(folder_name()));
        let worktrees = AgentWorktrees::new(own.unwrap_or_else(|| worktrees.clone()), worktrees);
        Self { settings, shared, sessions: conversation_queue(), worktrees }
    }

    pub(super) fn git(&self) -> Git {
        let shared = &self.shared;
        let worktrees = self.worktrees.home.clone();
        Git::new(shared.children.clone(), self.settings.user.clone(), shared.worktree_lists.clone(), worktrees)
    }

    /// Commits and removes worktrees of ended tasks that an earlier server left, or that could not be removed before.
    /// Returns how many belong to tasks that may still be recovered.
    pub async fn sweep_worktrees(&self, engine: &Engine) -> usize {
        self.worktrees.sweep(&self.git(), engine).await
    }

    /// Sweeps often until the worktrees of an earlier server are decided, and then now and again.
    pub async fn sweep_periodically(&self, engine: &Engine) {
        loop {
            let waiting = self.sweep_worktrees(engine).await;
            self.shared.clock.sleep(if waiting > 0 { SWEEP_SOON } else { SWEEP_EVERY }).await;
        }
    }

    /// Asks every program of this agent for its version, and warns of those that are missing or were not tested.
    pub async fn check_versions(&self) {
        for worker in self.settings.workers.all() {
            let about = worker.adapter.about();
            if about.binary.version_args.is_empty() {
                // The adapter knows no version argument, and to start it without one could do anything.
                continue;
            }
            let (agent, cli, tested) = (&self.settings.name, &about.name, about.binary.tested.join(", "));
            match super::version(&self.shared.children, &self.settings, worker).await {
                Ok(Version::Silent) => tracing::info!(%agent, %cli, "found; it does not say its version"),
                Ok(Version::NotTaken { how }) => tracing::warn!(
                    %agent, %cli, %how, "found; its version is unknown, and whether it works will show in its first task"
                ),
                Ok(Version::Said(version)) if is_tested(about, &version) => {
                    tracing::info!(%agent, %cli, %version, "found");
                }
                Ok(Version::Said(version)) => tracing::warn!(
                    %agent, %cli, %version, %tested, "this version was not tested; what it says is read leniently"
                ),
                Err(problem) => tracing::warn!(%agent, %cli, %problem, "cannot be used"),
            }
        }
    }
}

impl Agent for CliAgent {
    fn manifest(&self) -> Manifest {
        let workers = self.settings.workers.all();
        let mut titles: Vec<&str> = workers.iter().map(|worker| worker.adapter.about().title.as_str()).collect();
        titles.dedup();
        let titles = titles.join(", ");
        let name = format!("{} ({titles})", self.settings.name);
        let description = format!("Delegates coding tasks to {titles} on this machine and streams what it does");
        let skill = Skill::new(
            "code-task",
            "Execute coding task",
            "Runs a coding task (edit, refactor, analyse, explain, test) with a command-line coding agent",
        );
        let skill = skill.tags(&["coding", "refactor", "edit", "test"]).examples(&[
            "Refactor the auth module to use JWT",
            "Add unit tests for src/utils/date.ts",
            "Explain how the rate limiter works",
        ]);
        let mut manifest = Manifest::new(name, description).skill(skill).tool_calls();
        manifest.extensions.push(Cost::extension());
        manifest.input_modes.push("application/json".to_owned());
        manifest.output_modes.push("application/json".to_owned());
        // A child that waits for an approval is alive and cannot be parked.
        manifest.park = Park::Never;
        manifest
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        super::turn::run(self, turn, task).await
    }

    fn is_answer(&self, message: &Message) -> bool {
        super::approvals::is_answer(message)
    }

    async fn recover(&self, view: &TaskView) -> Recovery {
        let saved: TurnCheckpoint = view.saved.as_ref().and_then(|saved| saved.read().ok()).unwrap_or_default();
        if !saved.started {
            return Recovery::Queue;
        }
        let workers = self.settings.workers.all();
        let worker = workers.iter().find(|worker| worker.name() == saved.cli);
        let resumes = worker.is_some_and(|worker| worker.adapter.about().capabilities.resume);
        if resumes && saved.session.is_some() {
            return Recovery::Resume;
        }
        Recovery::Fail(
            "the server stopped while the program was running, and this program cannot be taken up again: look at what \
             it has done, then send the message again in the same context"
                .to_owned(),
        )
    }
}
