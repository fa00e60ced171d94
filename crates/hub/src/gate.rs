//! The approval gate: a wrapper around an agent that lets a turn begin only as the policy of its skill allows. It stands in what
//! is served, so every address, version and caller passes it, and so does every child task.
//!
//! A turn that has to wait is parked with a question, which only its reviewer answers. What has let it begin is told in the
//! task's metadata before the agent starts, so a process that takes the turn over knows whether the agent has begun.

mod caller_answer;
mod notice;
mod pass;
mod policies;
mod question;

use std::collections::BTreeSet;
use std::sync::Arc;

use switchboard_a2a::extension::hitl_mode::Mode;
use switchboard_a2a::{Message, Metadata};
use switchboard_engine::clock::Clock;
use switchboard_engine::store::ServerStore;
use switchboard_engine::{
    Agent, AgentError, Cause, Manifest, Recovery, Review, Reviewer, RoutingHints, Seq, Served, TaskHandle, TaskView,
    Turn, Verdict, WrappedAgent,
};
use switchboard_host::serve::ServerParts;

pub(crate) use policies::{CardSkill, ReviewPolicies};

use self::caller_answer::CallerAnswer;
use self::pass::Pass;
use self::policies::Wanted;
use crate::metric_definitions as metric;

/// An agent behind its gate.
struct Gate {
    agent: WrappedAgent,
    policies: ReviewPolicies,
    clock: Arc<dyn Clock>,
    store: Arc<dyn ServerStore>,
}

/// How a turn comes to begin, for its metric.
#[derive(Clone, Copy)]
enum Outcome {
    Told,
    Asked,
    Approved,
    ApprovedByTime,
    Modified,
    Rejected,
    RejectedByTime,
}

/// An agent as it is served, behind the gate that these policies make.
pub(crate) fn gated(parts: &ServerParts, served: Served, policies: ReviewPolicies) -> Served {
    let (clock, store) = (Arc::clone(&parts.clock), Arc::clone(&parts.store));
    let reviewed = policies.reviewed_skills();
    served.reviewed(reviewed, |agent| Gate { agent, policies, clock, store })
}

impl Agent for Gate {
    fn manifest(&self) -> Manifest {
        self.agent.manifest()
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        // Boxed, because a turn may last for hours and needs none of it any more.
        match Box::pin(self.admit(turn, &task)).await? {
            Some(turn) => self.agent.run(turn, task).await,
            None => Ok(()),
        }
    }

    fn is_answer(&self, message: &Message) -> bool {
        self.agent.is_answer(message)
    }

    async fn recover(&self, task: &TaskView) -> Recovery {
        let is_let_begin = Pass::of_task(&task.task, task.began).is_some();
        let was_asked = task.answered.as_deref().is_some_and(|review| is_gate_of(review, task.began));
        let named = named_skills(&task.message, None, &task.hints);
        let is_held = was_asked || self.policies.wanted(named, &[].into()).review.is_held();
        // Its agent has not begun, so it has nothing to say of it.
        if is_held && !is_let_begin { Recovery::Resume } else { self.agent.recover(task).await }
    }
}

impl Gate {
    /// The turn as its agent begins it or goes on with it; nothing if it waits for a decision, or was rejected.
    async fn admit(&self, turn: Turn, task: &TaskHandle) -> Result<Option<Turn>, AgentError> {
        let began = turn.began;
        let asked = turn.answered.clone().filter(|review| is_gate_of(review, began));
        let is_new = matches!(turn.cause, Cause::Begin) || (turn.cause == Cause::Next && turn.seq == began);
        if let Some(pass) = Pass::of_handle(task, began).filter(|_| !is_new) {
            pass.review_questions(task);
            // It has got nothing since but the decision.
            return match asked {
                Some(_) => Ok(Some(as_decided(turn, task).await?)),
                None => Ok(Some(turn)),
            };
        }
        if let Some(asked) = asked {
            return self.decided(*asked, turn, task).await;
        }
        if matches!(turn.cause, Cause::Answer { .. }) {
            // It answers the agent, which began before it was held.
            return Ok(Some(turn));
        }
        let named = match turn.seq == began {
            true => named_skills(&turn.message, turn.metadata.as_ref(), &turn.hints),
            false => {
                let first = task.turn_on(began, turn.clone()).await?;
                named_skills(&first.message, first.metadata.as_ref(), &first.hints)
            }
        };
        let wanted = self.policies.wanted(named, &turn.approved);
        match wanted.review.mode {
            Mode::Autonomous => Ok(Some(turn)),
            Mode::Notification => {
                if is_new || turn.cause == Cause::Recovered {
                    self.tell(&wanted, task).await?;
                    count(Mode::Notification, Outcome::Told);
                }
                Ok(Some(turn))
            }
            _ if wanted.is_approved => {
                Pass::of(began, &wanted).tell(task).await?;
                Ok(Some(turn))
            }
            _ => self.ask(&wanted, turn, task, None).await.map(|()| None),
        }
    }

    /// What becomes of a turn whose question has an answer.
    async fn decided(&self, asked: Review, turn: Turn, task: &TaskHandle) -> Result<Option<Turn>, AgentError> {
        let mode = asked.mode.as_deref().and_then(Mode::from_name).unwrap_or(Mode::Gated);
        let is_by_time = turn.by.is_none() && turn.verdict.is_some();
        let (verdict, reason) = match turn.verdict {
            Some(verdict) => (Some(verdict), turn.text()),
            None if asked.reviewer == Reviewer::Caller => match CallerAnswer::read(&turn.message) {
                Some(answer) => (Some(answer.verdict), answer.reason),
                None => (None, String::new()),
            },
            None => (None, String::new()),
        };
        let outcome = match verdict {
            Some(Verdict::Approve) if is_by_time => Outcome::ApprovedByTime,
            Some(Verdict::Approve) => Outcome::Approved,
            Some(Verdict::Modify) => Outcome::Modified,
            Some(Verdict::Reject) if is_by_time => Outcome::RejectedByTime,
            Some(Verdict::Reject) => Outcome::Rejected,
            Some(Verdict::Answer) | None => {
                let first = task.turn_on(turn.began, turn.clone()).await?;
                let named = named_skills(&first.message, first.metadata.as_ref(), &first.hints);
                let wanted = self.policies.wanted(named, &turn.approved);
                self.ask(&wanted, turn, task, Some(question::NO_DECISION)).await?;
                return Ok(None);
            }
        };
        count(mode, outcome);
        if verdict == Some(Verdict::Reject) {
            let reason = if reason.trim().is_empty() { "rejected by a reviewer".to_owned() } else { reason };
            task.reject(reason).await?;
            return Ok(None);
        }
        Pass::of_review(&asked, mode).tell(task).await?;
        let turn = as_decided(turn, task).await?;
        // Tasks begin with their first event.
        let cause = if turn.began == Seq(1) { Cause::Begin } else { Cause::Next };
        Ok(Some(Turn { cause, ..turn }))
    }

    /// Parks the turn until a reviewer has decided, or the time.
    async fn ask(
        &self,
        wanted: &Wanted<'_>,
        turn: Turn,
        task: &TaskHandle,
        note: Option<&str>,
    ) -> Result<(), AgentError> {
        let began = turn.began;
        let first = if turn.seq == began { turn } else { task.turn_on(began, turn).await? };
        let review = question::review(wanted, began, self.clock.now());
        let question = question::message(wanted, &review, &first.message, task, note);
        task.park_with(question, &review, None).await?;
        count(wanted.review.mode, Outcome::Asked);
        Ok(())
    }
}

/// The turn on the message that was approved, or on what the reviewer has written in its place.
async fn as_decided(turn: Turn, task: &TaskHandle) -> Result<Turn, AgentError> {
    let turn = match turn.verdict {
        Some(Verdict::Modify) => turn,
        _ => Turn { by: None, ..task.turn_on(turn.began, turn).await? },
    };
    Ok(Turn { verdict: None, answered: None, ..turn })
}

/// Whether a question stood before the work of the turn that began with this message.
fn is_gate_of(review: &Review, began: Seq) -> bool {
    review.is_gate() && review.turn == began
}

/// Every skill that a message names, or that routing has found for it.
fn named_skills(message: &Message, request: Option<&Metadata>, hints: &RoutingHints) -> BTreeSet<String> {
    let mut named = RoutingHints::named_skills(message, request);
    named.extend(hints.skill.clone());
    named
}

fn count(mode: Mode, outcome: Outcome) {
    let outcome = match outcome {
        Outcome::Told => "told",
        Outcome::Asked => "asked",
        Outcome::Approved => "approved",
        Outcome::ApprovedByTime => "approved_by_time",
        Outcome::Modified => "modified",
        Outcome::Rejected => "rejected",
        Outcome::RejectedByTime => "rejected_by_time",
    };
    metrics::counter!(metric::GATES, "mode" => mode.name(), "outcome" => outcome).increment(1);
}
