//! Merging what a task has done in its worktree, once an operator has approved it.
//!
//! When the program is done, its work is on the branch of the task, and the turn ends with a question for an operator. The
//! answer begins another turn: approved, the branch is merged into the one that the repository had checked out; rejected,
//! it stays; anything else is what the program goes on with. What is in the way of a merge is asked again. Each step looks
//! at the repository for what is done already, so a turn that was lost in any of them is begun again.

mod branch_merge;
mod changed_paths;
mod checkout_update;
mod clean_check;
mod leftovers;
mod obstacle;
mod plan;
mod question;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use switchboard_engine::{AgentError, Cause, Review, Reviewer, Stopped, TaskHandle, Turn, Verdict};

use super::approvals;
use super::cli_agent::CliAgent;
use super::git::{Git, GitError, GitTarget, IsolatedGitDir, Repository};
use super::metric_definitions as metric;
use super::sessions::TurnCheckpoint;
use super::task_reporter::data_artifact;
use super::workspace::wait_for_lock;
use super::worktree::short_name;
use branch_merge::BranchMerge;
use obstacle::Obstacle;
use plan::Plan;
use question::Preview;

pub(super) use checkout_update::MergeRecord;
pub(super) use leftovers::sweep;

/// The artifact that says what has become of the merge.
const MERGE_ARTIFACT: &str = "merge";

/// A merge that waits for its reviewer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PendingMerge {
    /// The message whose turn asks, by its number.
    pub(super) seq: u64,
    /// A folder of the checkout.
    pub(super) folder: PathBuf,
    pub(super) branch: String,
    /// The commit that is to be merged.
    pub(super) tip: String,
    /// What it is to be merged into, `refs/heads/…`.
    pub(super) target: String,
    /// What the program said at the end.
    pub(super) answer: String,
}

/// A turn that asks or merges.
pub(super) struct Merge<'a> {
    pub(super) agent: &'a CliAgent,
    pub(super) task: &'a TaskHandle,
    pub(super) turn: &'a Turn,
    /// What the task has saved beside the merge.
    pub(super) saved: TurnCheckpoint,
    pub(super) pending: PendingMerge,
}

/// What a turn does for a merge that waits.
enum Step {
    Ask,
    Merge,
    Keep(&'static str),
    /// The program goes on with the message.
    WorkOn,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MergeOutcome<'a> {
    branch: &'a str,
    into: &'a str,
    is_merged: bool,
    /// The commit that the branch stands at with the merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
}

/// The branch that a checkout is on; none if it is on none.
pub(super) async fn checked_out(git: &Git, repository: &Repository) -> Option<String> {
    let at = GitTarget::Repository(&repository.git_dir);
    let name = git.word(at, &["symbolic-ref", "--quiet", "HEAD"]).await.ok()?;
    name.starts_with("refs/heads/").then_some(name)
}

/// The name of a branch as people know it.
fn short(target: &str) -> &str {
    target.strip_prefix("refs/heads/").unwrap_or(target)
}

impl Merge<'_> {
    /// Goes on with a merge that waits. Returns what the task has saved if its program goes on instead.
    pub(super) async fn go_on(self) -> Result<Option<TurnCheckpoint>, AgentError> {
        let step = self.step();
        if !matches!(step, Step::Merge) {
            self.leave_no_half().await;
        }
        match step {
            Step::Ask => self.ask(None).await?,
            Step::Merge => self.merge().await?,
            Step::Keep(why) => self.keep(why).await?,
            Step::WorkOn => return Ok(Some(self.saved)),
        }
        Ok(None)
    }

    fn step(&self) -> Step {
        if matches!(self.turn.cause, Cause::Settled { .. }) {
            return Step::Keep("the question was settled elsewhere");
        }
        if self.turn.seq.0 == self.pending.seq {
            // The turn was lost before its question was stored.
            return Step::Ask;
        }
        match self.turn.verdict {
            Some(Verdict::Approve) => Step::Merge,
            Some(Verdict::Reject) => Step::Keep("it was rejected"),
            // A word that answers something else is nothing to work on.
            _ if approvals::unexpected_answer(&self.turn.message).is_some() => Step::Ask,
            _ => Step::WorkOn,
        }
    }

    /// Asks whether to merge, and ends the turn with that; or the task, if there is nothing to merge.
    pub(super) async fn ask(mut self, obstacle: Option<Obstacle>) -> Result<(), AgentError> {
        let limit = self.agent.settings.merge_diff;
        let (preview, problem) = match self.preview(limit).await {
            Ok(preview) => (Some(preview), None),
            Err(problem) => (None, Some(problem)),
        };
        if let Some(Preview { plan: Plan::Merged, .. }) = preview {
            return self.merged(None).await;
        }
        let obstacle = obstacle.or(problem);
        if obstacle.is_some() {
            count("asked_again");
        }
        let question = question::question(&self.pending, preview.as_ref(), obstacle.as_ref(), limit);
        self.pending.seq = self.turn.seq.0;
        self.saved.merge = Some(self.pending);
        self.task.save(&self.saved).await?;
        let review = Review::by(Reviewer::Operator, self.turn.began);
        Ok(self.task.park_with(question, &review, None).await?)
    }

    async fn preview(&self, limit: usize) -> Result<Preview, Obstacle> {
        let git = self.agent.git();
        let (repository, into) = self.target(&git).await?;
        let isolated = self.isolated(&git, &repository).await?;
        let preview = Preview::of(&git, &isolated, (&into, &self.pending.tip), limit).await;
        git.remove_folder(&self.folder()).await;
        Ok(preview?)
    }

    /// The repository, and the commit that the branch stands at.
    async fn target(&self, git: &Git) -> Result<(Repository, String), Obstacle> {
        let PendingMerge { folder, target, .. } = &self.pending;
        let none = |problem: &str| GitError { command: "rev-parse".to_owned(), problem: problem.to_owned() };
        let repository = Repository::of(git, folder).await.map_err(|missing| none(missing.text()))?;
        let into = git.commit(GitTarget::Repository(&repository.git_dir), target).await;
        into.map(|into| (repository, into)).ok_or_else(|| Obstacle::NoBranch(short(target).to_owned()))
    }

    async fn isolated(&self, git: &Git, repository: &Repository) -> Result<IsolatedGitDir, GitError> {
        let settings = git.harmless_settings(&repository.own).await;
        let how = (repository.object_format.as_str(), &settings[..]);
        git.isolated(&self.folder(), &repository.top, &repository.own, how).await
    }

    /// Our git directory for what is worked out about the merge.
    fn folder(&self) -> PathBuf {
        self.agent.worktrees.home.join(format!("{}.plan.git", self.name()))
    }

    /// What the merge of a task is called on disk.
    fn name(&self) -> String {
        short_name(self.task.id().to_string().as_bytes())
    }

    async fn merge(self) -> Result<(), AgentError> {
        let git = self.agent.git();
        let place = match self.target(&git).await {
            Ok((repository, _)) => repository.top,
            Err(obstacle) => return self.ask(Some(obstacle)).await,
        };
        let lock = self.agent.shared.repositories.enqueue(&place, self.task);
        if lock.ahead().is_some() {
            if self.task.is_waited_for_by(&lock.tasks_ahead()).await? {
                return self.keep("the repository is held by a task that waits for this one").await;
            }
            self.task.release_permit_while(wait_for_lock(&lock, self.task)).await??;
        }
        if self.task.is_canceled() {
            return Err(Stopped::Canceled.into());
        }
        let (pending, name, folder) = (self.pending.clone(), self.name(), self.folder());
        let (home, records) = (self.agent.worktrees.home.clone(), self.agent.worktrees.merges.clone());
        let task = self.task.id().clone();
        // In its own task: if the turn is canceled meanwhile, the merge is made to its end.
        let merging = tokio::spawn(async move {
            let made = BranchMerge { git, records, name, home, folder, pending, task }.run().await;
            drop(lock);
            made
        });
        match merging.await.map_err(|error| AgentError::new(format!("the merge could not be made: {error}")))? {
            Ok(commit) => self.merged(commit).await,
            Err(obstacle) => self.ask(Some(obstacle)).await,
        }
    }

    async fn merged(self, commit: Option<String>) -> Result<(), AgentError> {
        let into = short(&self.pending.target);
        let text = match &commit {
            Some(commit) => format!("Merged into {into} as {}.", commit.get(..12).unwrap_or(commit)),
            None => format!("{into} has the work already."),
        };
        count("merged");
        self.end(text, Some(commit)).await
    }

    async fn keep(self, why: &str) -> Result<(), AgentError> {
        count("kept");
        let text = format!("Not merged: {why}. The work stays on the branch {}.", self.pending.branch);
        self.end(text, None).await
    }

    /// Ends the task. `merged` is there if it is merged, with the commit if it was made here.
    async fn end(self, text: String, merged: Option<Option<String>>) -> Result<(), AgentError> {
        let PendingMerge { branch, target, answer, .. } = &self.pending;
        let commit = merged.as_ref().and_then(Option::as_deref);
        let outcome = MergeOutcome { branch, into: short(target), is_merged: merged.is_some(), commit };
        if let Some(artifact) = data_artifact(MERGE_ARTIFACT, &outcome) {
            self.task.artifact(artifact).await?;
        }
        let text = if answer.trim().is_empty() { text } else { format!("{}\n\n{text}", answer.trim_end()) };
        self.task.save(&TurnCheckpoint { merge: None, ..self.saved }).await?;
        Ok(self.task.complete_with(text).await?)
    }

    /// Puts back what a merge that failed halfway has left of itself.
    async fn leave_no_half(&self) {
        let (agent, name) = (self.agent, self.name());
        leftovers::undo(&agent.git(), &agent.worktrees.home, &agent.worktrees.merges, &name).await;
    }
}

fn count(outcome: &'static str) {
    metrics::counter!(metric::MERGES, "outcome" => outcome).increment(1);
}
