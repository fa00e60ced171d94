//! One turn: its worker, workspace and session, and how its outcome ends the task.

mod outcome;

use std::path::Path;
use std::time::Duration;

use switchboard_a2a::Message;
use switchboard_engine::reason::Reason;
use switchboard_engine::{AgentError, Cause, Seq, Stopped, TaskHandle, Turn};

use super::CliAgent;
use super::approvals;
use super::message_text::message_text;
use super::process::TreeExit;
use super::process_bound_position::ProcessBoundPosition;
use super::request_options::RequestOptions;
use super::run::{self, RunOutcome};
use super::sessions::{self, AgentMetadata, ConversationRecord, ConversationTurn, TokenTotals, TurnCheckpoint};
use super::settings::Worker;
use super::task_reporter::{Cost, TaskReporter};
use super::transcript;
use super::workspace::{self, ChosenFolder, Workspace, WorkspaceError};
use super::worktree::{BRANCH_PREFIX, Worktree, WorktreePolicy, WorktreeRequest};
use crate::adapters::{Ending, FailureKind, Order, Permissions, Session};

/// So many branches of a conversation are remembered. Most do not exist, because nothing was changed.
const MOST_BRANCHES: usize = 20;
/// The number of every task's first message.
const FIRST: Seq = Seq(1);
/// A program that is not ready is started so often, this far apart.
const STARTS: u32 = 4;
const BETWEEN_STARTS: Duration = Duration::from_millis(500);
/// A turn that is lost so often, each time this soon after its program was started, is not taken up again. It may be
/// what takes the server down, and each time costs what the program costs. That the program said something is no
/// progress then, unlike with other agents.
const MOST_LOSSES: u32 = 3;
const SOON: Duration = Duration::from_secs(600);
const LOST_TOO_OFTEN: &str = "the server was lost again and again soon after this program was started, so it is not \
                              started once more: look into the log of the server, then send a message in the same \
                              context to go on";
/// The prompt of a recovered turn.
const GO_ON: &str = "You were interrupted while you worked on the message below. Look at what is already done, do not \
                     do it twice, and go on from there.";

pub(super) async fn run(agent: &CliAgent, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
    // Before anything is waited for: turns begin in the order in which their messages came.
    let (caller, context) = (turn.caller.clone(), task.context_id().clone());
    let conversation = agent.sessions.enqueue(ConversationTurn { caller, context, task: task.id().clone() });
    let conversation = ProcessBoundPosition::new(conversation);
    let mut saved: TurnCheckpoint = turn.saved.as_ref().and_then(|saved| saved.read().ok()).unwrap_or_default();
    let is_recovered = turn.cause == Cause::Recovered && saved.started;
    let repositories = &agent.shared.repositories;
    // Only for the first turn of its conversation: others could deadlock between both queues.
    let folder = saved.folder.as_deref().filter(|_| is_recovered && conversation.is_admitted()).map(Path::new);
    let kept = folder.and_then(|folder| Workspace::enqueue(&agent.settings, repositories, folder, &task));
    let was_stopped = turn.was_stopped;
    let turn = match saved.seq {
        // If its program has asked, the newest message is only the answer to that.
        Some(seq) if is_recovered => task.turn_on(Seq(seq), turn).await?,
        _ => turn,
    };
    if is_recovered {
        let now = agent.shared.clock.now();
        let is_soon = saved.began.is_some_and(|began| now.0 - began.0 < SOON.as_millis() as i64);
        // A program that waits for an answer crashes nothing, and a graceful shutdown does not count.
        let is_innocent = was_stopped || task.snapshot().status.state.is_interrupted();
        saved.losses = match (is_innocent, is_soon) {
            (true, _) => saved.losses,
            (false, true) => saved.losses + 1,
            (false, false) => 1,
        };
        if saved.losses > MOST_LOSSES {
            return Ok(task.fail_because(Reason::RecoveryLimit, None, LOST_TOO_OFTEN).await?);
        }
        // A question that was open has no program any more, and must not be answered.
        task.status("The program was interrupted and is taken up again.").await?;
    }
    let begins_task = turn.seq == FIRST && !is_recovered;
    if turn.seq != FIRST
        && !is_recovered
        && let Some(note) = approvals::unexpected_answer(&turn.message)
    {
        return Ok(ignore_answer(&task, note).await?);
    }
    if begins_task && let Some(refusal) = approvals::refuse_as_first_message(&turn.message, false) {
        return Ok(task.reject(refusal).await?);
    }
    let text = match message_text(&turn.message) {
        Ok(text) => text,
        Err(refusal) => return Ok(task.reject(refusal).await?),
    };
    let options = match RequestOptions::read(&turn, &agent.settings) {
        Ok(options) => options,
        Err(refusal) => return Ok(task.reject(refusal).await?),
    };
    if !conversation.is_admitted() {
        if begins_task && let Some(refusal) = approvals::refuse_as_first_message(&turn.message, true) {
            return Ok(task.reject(refusal).await?);
        }
        if task.rejects_deadlock(&sessions::tasks_ahead(&conversation), "this conversation").await? {
            return Ok(());
        }
        task.status("Waiting: another task of this conversation is running.").await?;
        task.release_permit_while(conversation.wait()).await?;
    }
    let past: Option<ConversationRecord> = task.noted().await?.and_then(|noted| noted.read().ok());
    let earlier = past.as_ref().map(|past| past.branches.clone()).unwrap_or_default();
    let began = past.as_ref().and_then(|past| past.metadata.profile.as_deref());
    let skill =
        turn.skill().or_else(|| past.as_ref().and_then(|past| past.metadata.skill.as_deref())).map(str::to_owned);
    let (workers, permissions) = agent.settings.of_skill(skill.as_deref());
    let (worker, difficulty) = workers.choose(turn.profile(), began, &turn.text());
    if is_recovered && saved.cli != worker.name() {
        let text = another_program(&saved.cli, worker.name());
        return Ok(task.fail_because(Reason::Interrupted, None, text).await?);
    }
    let chosen = match ChosenFolder::find(&agent.settings, options.repo.as_deref(), past.as_ref()).await {
        Ok(chosen) => chosen,
        Err(error @ WorkspaceError::Missing(_)) => return Ok(task.fail(error.to_string()).await?),
        Err(error) => return Ok(task.reject(error.to_string()).await?),
    };
    // The program of a recovered turn has its options already.
    let goes_on_from = past.as_ref().filter(|past| !is_recovered && chosen.is_where(past));
    if let Err(refusal) = options.fit(worker, difficulty, goes_on_from) {
        return Ok(task.reject(refusal).await?);
    }
    let workspace = match agent.settings.worktree {
        WorktreePolicy::Off => match Workspace::open(&agent.settings, repositories, chosen, kept, &task).await? {
            Some(workspace) => workspace,
            None => return Ok(()),
        },
        policy => {
            drop(kept);
            let wanted = WorktreeRequest {
                folder: &chosen.folder,
                context: &format!("{}\n{}", turn.caller, task.context_id()),
                branch: (policy == WorktreePolicy::Keep).then(|| format!("{BRANCH_PREFIX}{}", task.id())),
                earlier: &earlier,
                base: saved.base.as_deref(),
                tip: saved.tip.as_deref(),
            };
            match Worktree::open(&agent.git(), &agent.worktrees, wanted, &task).await {
                Ok(worktree) => Workspace::in_worktree(worktree, chosen),
                Err(problem) => return Ok(task.fail(problem).await?),
            }
        }
    };
    if workspace::is_elsewhere(&workspace.chosen.folder) {
        return Ok(task.reject(WorkspaceError::Moved.to_string()).await?);
    }
    if let Some(note) = past.as_ref().and_then(|past| workspace.chosen.moved_since(past)) {
        task.status(note).await?;
        saved.session = None;
    }
    // The session is unknown in another folder.
    let past = past.filter(|past| workspace.chosen.is_where(past));
    let metadata = AgentMetadata {
        cli: worker.name().to_owned(),
        model: options.model_in_use(worker, past.as_ref().filter(|past| past.is_of(worker.name()))),
        session_id: None,
        profile: difficulty.map(|difficulty| difficulty.name().to_owned()),
        repo: workspace.chosen.repo.clone(),
        branch: workspace.worktree.as_ref().and_then(Worktree::branch).map(str::to_owned),
        skill: skill.filter(|skill| agent.settings.skills.contains_key(skill)),
    };
    let mut prepared = PreparedTurn {
        agent,
        turn,
        task,
        saved,
        is_recovered,
        worker,
        permissions,
        options,
        conversation,
        workspace,
        past,
        earlier,
        metadata,
        text,
    };
    let worked = prepared.work().await;
    if let (Err(AgentError::Stopped(Stopped::TooLarge(_))), Some(worktree)) =
        (&worked, &mut prepared.workspace.worktree)
    {
        // The kernel ends the task for this, so its worktree is not used again.
        worktree.give_up();
    }
    worked
}

/// Ends a turn whose message is an answer without a question. The result of the turn before stays the task's last
/// message.
async fn ignore_answer(task: &TaskHandle, note: String) -> Result<(), Stopped> {
    let said = task.snapshot().status.message.as_ref().map(Message::joined_text).unwrap_or_default();
    task.status(note).await?;
    match said.trim().is_empty() {
        true => task.complete().await,
        false => task.complete_with(said).await,
    }
}

/// Why a lost turn does not go on with a program that knows nothing of its session.
fn another_program(before: &str, now: &str) -> String {
    format!(
        "the server stopped while {before} was running, and this agent works with {now} now: look at what was done, then \
         send the message again in the same context"
    )
}

/// A turn for which everything is decided.
struct PreparedTurn<'a> {
    agent: &'a CliAgent,
    turn: Turn,
    task: TaskHandle,
    saved: TurnCheckpoint,
    /// The program was running for this turn when the server stopped.
    is_recovered: bool,
    worker: &'a Worker,
    /// What the program may do for the skill of the conversation.
    permissions: &'a Permissions,
    options: RequestOptions,
    /// Its turn in the conversation.
    conversation: ProcessBoundPosition<ConversationTurn>,
    workspace: Workspace,
    /// What the conversation has come to, with whatever program.
    past: Option<ConversationRecord>,
    /// Branches of the conversation's earlier tasks, the newest first.
    earlier: Vec<String>,
    metadata: AgentMetadata,
    text: String,
}

impl PreparedTurn<'_> {
    async fn work(&mut self) -> Result<(), AgentError> {
        let is_recovered = self.is_recovered;
        let known = if is_recovered { self.saved.session.clone() } else { None };
        let known = known.or_else(|| self.own_past().and_then(|past| past.metadata.session_id.clone()));
        let resumable = known.filter(|_| self.worker.adapter.about().capabilities.resume);
        let mut starts = 1;
        let mut prompt = self.prompt(is_recovered, resumable.is_some()).await;
        let about = self.worker.adapter.about();
        // Another program had the conversation, or this one never came to begin its session.
        if self.past.is_some() && resumable.is_none() && about.capabilities.resume {
            let status =
                format!("{} has no session of this conversation; one begins with its transcript.", about.title);
            self.task.status(status).await?;
            prompt = transcript::with_transcript(&self.task, &self.turn.message, &prompt).await;
        }
        let began = self.agent.shared.clock.now();
        let fresh = || Session::New(uuid::Uuid::new_v4().to_string());
        let mut session = resumable.map_or_else(fresh, Session::Resume);
        let base = self.workspace.worktree.as_ref().map(|worktree| worktree.base().to_owned());
        let TurnCheckpoint { tip, always, losses, .. } = std::mem::take(&mut self.saved);
        let seq = Some(self.turn.seq.0);
        let own = self.workspace.worktree.is_none().then(|| self.workspace.folder.to_str().map(str::to_owned));
        let folder = own.flatten();
        self.saved =
            TurnCheckpoint { seq, folder, base, tip, always, losses, began: Some(began), ..TurnCheckpoint::default() };
        loop {
            let order = self.order(session.clone(), prompt.clone());
            let resumes = matches!(session, Session::Resume(_));
            let mut report = self.report(&session);
            let (conversation, workspace) = (&mut self.conversation, &mut self.workspace);
            let started = |tree_exit: TreeExit| {
                conversation.hold_until_exit(tree_exit.clone());
                workspace.hold_until_exit(tree_exit);
            };
            let saved = &mut self.saved;
            let ran = run::run(self.agent, self.worker, &order, saved, &self.task, &mut report, started).await;
            run::count(self.worker, &ran);
            let outcome = match ran {
                Ok(outcome) => outcome,
                Err(stopped) => {
                    // The terminal event is written by what stopped the task; the last chunks can come before it.
                    let _ = report.end_texts().await;
                    if stopped == Stopped::Canceled {
                        self.workspace.publish_changes(&mut report, &self.turn.text()).await;
                    }
                    return Err(stopped.into());
                }
            };
            if let (true, RunOutcome::Ended(Ending::Failed(failure))) = (resumes, &outcome)
                && failure.kind == FailureKind::UnknownSession
            {
                // Its records are gone, or it never came to write any. The work can still be done.
                self.task
                    .status("The program has lost the earlier conversation; a new one begins with its transcript.")
                    .await?;
                let whole = self.prompt(is_recovered, false).await;
                prompt = transcript::with_transcript(&self.task, &self.turn.message, &whole).await;
                session = fresh();
                continue;
            }
            if let RunOutcome::Ended(Ending::Failed(failure)) = &outcome
                && failure.kind == FailureKind::NotReady
                && starts < STARTS
            {
                self.task.status("The program was not ready and is started again.").await?;
                tokio::select! {
                    () = self.agent.shared.clock.sleep(BETWEEN_STARTS) => {}
                    () = self.task.canceled() => return Err(Stopped::Canceled.into()),
                }
                starts += 1;
                continue;
            }
            return self.settle(outcome, report, began).await;
        }
    }

    /// The prompt: the message, with the repository summary or the recovery note before it.
    async fn prompt(&self, is_recovered: bool, is_resumed: bool) -> String {
        let text = self.text.clone();
        if is_recovered {
            return format!("{GO_ON}\n\n{text}");
        }
        if !self.agent.settings.context || is_resumed {
            return text;
        }
        let shared = &self.agent.shared;
        match shared.summaries.of(&self.agent.git(), &self.workspace.folder).await {
            Some(summary) => format!("{summary}\n\n{text}"),
            None => text,
        }
    }

    /// What the conversation has come to with this program.
    fn own_past(&self) -> Option<&ConversationRecord> {
        self.past.as_ref().filter(|past| past.is_of(self.worker.name()))
    }

    fn order(&self, session: Session, prompt: String) -> Order {
        Order {
            prompt,
            session,
            cwd: self.workspace.folder.clone(),
            model: self.options.model.clone().or_else(|| self.worker.model.clone()),
            effort: self.options.effort.clone().or_else(|| self.worker.effort.clone()),
            permissions: self.permissions.clone(),
            args: self.worker.args.clone(),
        }
    }

    fn report(&self, session: &Session) -> TaskReporter {
        let before = sessions::cost(&self.task.snapshot());
        let session_before = match session {
            Session::Resume(_) => self.own_past().map(|past| past.total).unwrap_or_default(),
            Session::New(_) => TokenTotals::default(),
        };
        let session_id = session.known(self.worker.adapter.about().capabilities.chosen_session);
        let metadata = AgentMetadata { session_id, ..self.metadata.clone() };
        let earlier = self.earlier.iter().filter(|branch| metadata.branch.as_ref() != Some(branch));
        let branches = metadata.branch.iter().chain(earlier).take(MOST_BRANCHES).cloned().collect();
        let folder = self.workspace.chosen.noted();
        TaskReporter::new(self.task.clone(), metadata, folder, branches, Cost::new(before, session_before))
    }
}
