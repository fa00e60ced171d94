//! What the sweep does with a task whose time is over: it fails, or its question is decided as it says itself.
//!
//! A question that approves itself needs the time that it gave its reviewers as time of this process, from when it first
//! saw the question: no reviewer can object to a server that is down, and no step of the wall clock approves anything.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_a2a::{Message, Role, Timestamp};

use crate::append::PendingAppend;
use crate::clock::later;
use crate::decide::ReviewAnswer;
use crate::engine::EngineState;
use crate::error::Error;
use crate::event::Event;
use crate::ids::{Seq, TaskKey};
use crate::live_task::{Core, LiveTask};
use crate::reason::Reason;
use crate::review::{ExpiryAction, Review, Verdict};
use crate::store::RowState;

/// What the time has brought about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// The task fails.
    Fails(Reason),
    /// Its question is decided.
    Decided(Verdict, Seq),
    /// It waits on, until a later time if there is one.
    Waits(Option<Timestamp>),
}

/// When this process first saw the open questions that approve themselves, by its own time. A task has one at a time.
#[derive(Default)]
pub(crate) struct QuestionSightings(Mutex<HashMap<TaskKey, Sighting>>);

struct Sighting {
    question: Seq,
    /// By the clock that no step changes.
    seen: Duration,
}

impl QuestionSightings {
    /// How long ago the question was first seen; now if it was not.
    fn seen_for(&self, key: TaskKey, question: Seq, now: Duration) -> Duration {
        let mut all = self.0.lock();
        let sighting = all.entry(key).or_insert(Sighting { question, seen: now });
        if sighting.question != question {
            *sighting = Sighting { question, seen: now };
        }
        now.saturating_sub(sighting.seen)
    }

    fn forget(&self, key: TaskKey) {
        self.0.lock().remove(&key);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Forgets what was seen so long ago that it has expired some other way, on another node perhaps while the task was not
    /// in memory here.
    pub(crate) fn prune(&self, now: Duration, kept: Duration) {
        self.0.lock().retain(|_, sighting| now.saturating_sub(sighting.seen) <= kept);
    }
}

impl EngineState {
    /// Notes a question that approves itself, as soon as it is committed here.
    pub(crate) fn see_question(&self, core: &Core, events: &[Event]) {
        let approves = |review: Review| review.then == ExpiryAction::Approve;
        if events.iter().any(|event| Review::of_event(event).is_some_and(approves))
            && let Some(key) = core.key
        {
            self.sightings.seen_for(key, Seq(core.fold.kernel.last_stop), self.clock.monotonic());
        }
    }

    /// Forgets the question of a task that waited, if memory has followed the log to where it does not.
    pub(crate) fn forget_closed_question(&self, core: &Core, waited: bool) {
        if waited
            && !core.row.state.is_interrupted()
            && let Some(key) = core.key
        {
            self.sightings.forget(key);
        }
    }

    /// When a task that asks now expires: by its question, the question timeout or its deadline, whichever is first.
    pub(crate) fn expiry_of(&self, core: &Core, review: Option<&Review>) -> Option<Timestamp> {
        let unanswered = later(self.clock.now(), self.settings.parked_expiry);
        let own = review.and_then(|review| review.expires_at);
        [Some(unanswered), self.deadline_of(core), own].into_iter().flatten().min()
    }

    /// What has become of a task that waits and whose row says that its time is over. A question whose agent is not served
    /// is not decided, because nothing could go on: it stays open until the question timeout.
    pub(crate) fn expired(&self, live: &LiveTask, core: &Core, now: Timestamp) -> Expired {
        let deadline = self.deadline_of(core);
        if deadline.is_some_and(|deadline| deadline <= now) {
            return Expired::Fails(Reason::TimedOut);
        }
        if !core.row.state.is_interrupted() {
            // It waits in the queue, and its row has the deadline of an earlier configuration.
            return Expired::Waits(deadline);
        }
        let timeout = later(core.row.status_at, self.settings.parked_expiry);
        let Some(review) = core.fold.review().filter(|_| now < timeout) else {
            return Expired::Fails(Reason::InputExpired);
        };
        let question = Seq(core.fold.kernel.last_stop);
        let latest = deadline.map_or(timeout, |deadline| deadline.min(timeout));
        let decided = |verdict| match live.hosted {
            Some(_) => Expired::Decided(verdict, question),
            None => Expired::Waits(Some(latest)),
        };
        match (review.then, review.expires_at) {
            (_, Some(at)) if at > now => Expired::Waits(Some(at.min(latest))),
            (ExpiryAction::Fail, _) | (_, None) => Expired::Fails(Reason::InputExpired),
            (ExpiryAction::Reject, _) => decided(Verdict::Reject),
            (ExpiryAction::Escalate, _) => Expired::Waits(Some(latest)),
            (ExpiryAction::Approve, Some(at)) => {
                // A time before the question gives reviewers none: the clock was set, or the time could not be written.
                let needed = u64::try_from(at.0 - core.row.status_at.0).ok().map(Duration::from_millis);
                let (Some(needed), Some(key)) = (needed, core.key) else { return Expired::Waits(Some(latest)) };
                match needed.saturating_sub(self.sightings.seen_for(key, question, self.clock.monotonic())) {
                    Duration::ZERO => decided(Verdict::Approve),
                    missing => Expired::Waits(Some(later(now, missing).min(latest))),
                }
            }
        }
    }

    /// Decides a question whose time is over.
    pub(crate) async fn decide_by_time(
        self: &Arc<Self>,
        live: Arc<LiveTask>,
        verdict: Verdict,
        question: Seq,
    ) -> Result<(), Error> {
        let text = match verdict {
            Verdict::Approve => "approved: no reviewer objected in time",
            _ => "rejected: no reviewer answered in time",
        };
        let answer = ReviewAnswer { verdict, message: Message::text(Role::User, text) };
        let decided = self.clone().decide_question(live, question, None, answer).await;
        match decided {
            // Another writer was first.
            Ok(_) | Err(Error::QuestionClosed { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Lets a task wait on, until the time that counts for it under its lock: it may have asked another question since it
    /// was looked at.
    pub(crate) async fn postpone_expiry(&self, live: &LiveTask) -> Result<(), Error> {
        let decide = |core: &mut Core| {
            let now = self.clock.now();
            let waits = core.row.state.is_interrupted() || core.row.phase.is_queued();
            let is_due = waits && core.row.expires_at.is_some_and(|at| at <= now);
            match self.expired(live, core, now) {
                Expired::Waits(until) if is_due => {
                    let row = RowState { expires_at: until, ..core.row.clone() };
                    Some(PendingAppend::inbox(Vec::new(), row))
                }
                _ => None,
            }
        };
        live.inbox_if(self, decide).await?;
        Ok(())
    }
}
