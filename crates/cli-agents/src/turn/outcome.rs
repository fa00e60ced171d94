//! How the outcome of a run ends the task of its turn: result, failure reason, and what the caller can do next.

use switchboard_a2a::Timestamp;
use switchboard_engine::reason::Reason;
use switchboard_engine::{AgentError, Stopped};

use super::PreparedTurn;
use crate::adapters::{Ending, Failure, FailureKind, plain};
use crate::deadlines::{ExceededLimit, format_limit};
use crate::run::RunOutcome;
use crate::sessions::TurnCheckpoint;
use crate::task_reporter::TaskReporter;
use crate::worktree::Worktree;

impl PreparedTurn<'_> {
    pub(super) async fn settle(
        &mut self,
        outcome: RunOutcome,
        mut report: TaskReporter,
        began: Timestamp,
    ) -> Result<(), AgentError> {
        let took = u64::try_from(self.agent.shared.clock.now().0 - began.0).unwrap_or(0);
        // Programs that never say so have worked somewhere too, and the next turn goes on there.
        if !matches!(outcome, RunOutcome::NotStarted(_) | RunOutcome::Refused(_)) {
            report.publish_metadata().await?;
        }
        if !matches!(
            outcome,
            RunOutcome::Ended(Ending::Done { .. }) | RunOutcome::NotStarted(_) | RunOutcome::Refused(_)
        ) {
            // If the task is too large for another event, it still ends with its outcome.
            let _ = report.end_texts().await;
        }
        if let Some(worktree) = &mut self.workspace.worktree {
            match worktree.changes(&self.turn.text()).await {
                Ok(changes) => report.changes(worktree, changes).await?,
                Err(error) => {
                    let text = match worktree.branch() {
                        Some(_) if worktree.tip().is_none() => "could not be committed yet and stays in the worktree",
                        _ => "cannot be told",
                    };
                    self.task.status(format!("What was changed {text}: {error}")).await?;
                }
            }
        }
        let (task, settings) = (&self.task, &self.agent.settings);
        match outcome {
            RunOutcome::Ended(Ending::Done { answer }) => {
                let answer = report.result(answer, took).await?;
                // With another message waiting, the next turn must not be taken for this one.
                let worktree = self.workspace.worktree.as_ref();
                let base = worktree.map(|worktree| worktree.base().to_owned());
                let tip = worktree.and_then(Worktree::tip).map(str::to_owned);
                let always = self.saved.always.clone();
                task.save(&TurnCheckpoint { base, tip, always, ..TurnCheckpoint::default() }).await?;
                match answer.trim().is_empty() {
                    true => task.complete_with("The program ended the turn without a word.").await?,
                    false => task.complete_with(answer).await?,
                }
            }
            RunOutcome::Ended(Ending::Failed(failure)) => self.fail(&failure).await?,
            RunOutcome::TimeLimit(ExceededLimit::Timeout) => {
                let limit = format_limit(settings.timeout);
                let text = format!("stopped after {limit} of work (timeout). {}", self.how_to_go_on(&report));
                task.fail_because(Reason::TimedOut, None, text).await?;
            }
            RunOutcome::TimeLimit(ExceededLimit::Idle) => {
                let limit = format_limit(settings.idle);
                let text = format!("stopped after {limit} of silence (idle). {}", self.how_to_go_on(&report));
                task.fail_because(Reason::Idle, None, text).await?;
            }
            RunOutcome::Expired(tool) => {
                let limit = format_limit(Some(settings.approval_expiry));
                let text = format!(
                    "no answer came within {limit} whether {} may be used (permissions.expiry). {}",
                    plain(&tool),
                    self.how_to_go_on(&report)
                );
                task.fail_because(Reason::InputExpired, Some("approval_expired"), text).await?;
            }
            RunOutcome::OutputLimit(text) => task.fail_because(Reason::TooLarge, None, text).await?,
            RunOutcome::NotStarted(text) => task.fail_because(Reason::AgentError, Some("not_started"), text).await?,
            RunOutcome::Refused(text) => task.reject(text).await?,
        }
        if let Some(worktree) = self.workspace.worktree.take() {
            // Only now: had the server been killed before, the next one would have needed it.
            worktree.close().await;
        }
        Ok(())
    }

    async fn fail(&self, failure: &Failure) -> Result<(), Stopped> {
        let (reason, detail) = match failure.kind {
            FailureKind::NoResult => (Reason::NoResult, None),
            FailureKind::Interrupted => (Reason::Interrupted, None),
            FailureKind::Reported => (Reason::AgentError, None),
            FailureKind::Refused => (Reason::AgentError, Some("tool_refused")),
            FailureKind::NotLoggedIn => (Reason::AgentError, Some("not_logged_in")),
            FailureKind::UnknownSession => (Reason::AgentError, Some("unknown_session")),
            FailureKind::Limit => (Reason::AgentError, Some("limit")),
            FailureKind::NotReady => (Reason::AgentError, Some("not_started")),
        };
        let message = plain(&failure.message);
        let text = match failure.kind {
            FailureKind::NotLoggedIn => {
                let login = self.worker.adapter.about().binary.login.as_str();
                match message.contains("log in") || message.contains("login") {
                    true => message.into_owned(),
                    false => {
                        format!("{}. To log in: {}.", message.trim_end_matches('.'), login.trim_end_matches('.'))
                    }
                }
            }
            _ if self.refuses_root(failure) => {
                format!("{message}. Set `user` of this agent to an account that is not root.")
            }
            _ => message.into_owned(),
        };
        self.task.fail_because(reason, detail, text).await
    }

    /// Whether the program refused to start as root.
    fn refuses_root(&self, failure: &Failure) -> bool {
        let runs_as_root = self.agent.settings.user.is_none() && rustix::process::geteuid().is_root();
        runs_as_root
            && self.worker.adapter.about().binary.refuses_root
            && failure.kind == FailureKind::NoResult
            && failure.message.contains("root")
    }

    /// What a caller can do after a turn that was stopped.
    fn how_to_go_on(&self, report: &TaskReporter) -> &'static str {
        let can_resume = self.worker.adapter.about().capabilities.resume && report.metadata.session_id.is_some();
        match can_resume {
            true => "Send another message with the same contextId to go on where it stopped.",
            false => "Send the message again to begin anew.",
        }
    }
}
