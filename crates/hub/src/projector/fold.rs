//! Folds a page of the log into what follows from it: health sums, jobs, alerts and samples. Of a task only the end is looked
//! at, and what its agent says that it has changed outside.

use std::collections::HashMap;
use std::sync::Arc;

use switchboard_a2a::{TaskState, TaskStatusUpdate, Timestamp};
use switchboard_engine::event::Event;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::feed::{FeedContent, FeedCursor, FeedRow, JournalLine, Written};
use switchboard_engine::store::hub::{HealthStep, NewJob};
use switchboard_engine::store::{EventRow, StoreError, TaskIdentity};
use switchboard_engine::{AgentName, Error, Seq};

use super::agent_facts::AgentFacts;
use super::families::Families;
use super::observers::{ENDED, EndedTask};
use super::state::Failure;
use super::{Projector, drift};
use crate::alerts;
use crate::ceremonies::Completed;
use crate::experiments;
use crate::health::{Outcome, Reported, Sums, Tally};
use crate::inbox::AnsweredQuestion;
use crate::jobs::owed_escalation;
use crate::routes::Hits;

/// What has been read and not been written.
#[derive(Default)]
pub(super) struct Page {
    pub(super) rows: usize,
    pub(super) cursor: Option<FeedCursor>,
    /// The time of its last event.
    pub(super) last_at: Option<Timestamp>,
    /// What is known of the agents of its rows.
    pub(super) agents: HashMap<AgentName, AgentFacts>,
    pub(super) tally: Tally,
    pub(super) jobs: Vec<NewJob>,
    pub(super) families: Families,
    pub(super) failures: Vec<(String, Failure)>,
    pub(super) drops: Vec<alerts::Drop>,
    pub(super) noticed: Vec<alerts::Noticed>,
    /// What was observed of declared effects, in order.
    pub(super) observations: Vec<drift::Observation>,
    pub(super) journal: Vec<JournalLine>,
    /// Ended tasks that an experiment has given to its agents.
    pub(super) samples: Vec<experiments::Sample>,
    /// Questions that were decided.
    pub(super) answered: Vec<AnsweredQuestion>,
    /// What routes owe because of it.
    pub(super) hits: Hits,
}

/// A row of a task's log.
#[derive(Clone, Copy)]
struct Row<'a> {
    key: TaskKey,
    task: &'a TaskIdentity,
    events: &'a EventRow,
    written: Option<&'a Written>,
}

impl Projector {
    /// Adds a row to a page.
    pub(super) async fn fold(&mut self, page: &mut Page, row: &FeedRow, after: Seq) -> Result<(), Error> {
        let owed = page.hits.add(&self.hub, row, after).await?;
        page.jobs.extend(owed.jobs);
        page.journal.extend(owed.lines);
        match &row.content {
            FeedContent::Journal(line) => {
                page.last_at = Some(line.at);
                page.drops.extend(alerts::Drop::of(line));
                page.noticed.extend(alerts::Noticed::of(line).or_else(|| alerts::Noticed::of_route(line)));
                Ok(())
            }
            FeedContent::Events { hidden: true, .. } => Ok(()),
            FeedContent::Events { key, task, events, written, .. } => {
                let written = written.take();
                let ended = Row { key: *key, task, events, written: written.as_deref() };
                self.fold_events(page, ended, after).await
            }
        }
    }

    /// Only the terminal event of a row is looked at: nothing of a task counts before, but what its agent has changed
    /// outside, if it declares such changes.
    async fn fold_events(&mut self, page: &mut Page, row: Row<'_>, after: Seq) -> Result<(), Error> {
        let Row { key, task, events, written } = row;
        page.families.see(task, events, after);
        if events.last_seq() <= after {
            return Ok(());
        }
        if events.first_seq > after {
            page.answered.extend(AnsweredQuestion::of(&*self.hub.parts.store, key, events).await?);
        }
        let agent = page.agents.entry(task.agent.clone()).or_insert_with(|| AgentFacts::of(&self.hub, &task.agent));
        if agent.changes_world {
            self.fold_deltas(page, row, after).await?;
        }
        let decoded = match written {
            Some(_) => None,
            None => decode_status(events.last_line()),
        };
        let question = written.and_then(|written| written.question.as_ref()).or(decoded.as_ref());
        page.jobs.extend(question.and_then(|question| owed_escalation(task, events.last_seq(), question)));
        let Some(end) = written.and_then(|written| written.end.as_ref()).or(decoded.as_ref()) else {
            if let Some(first) = written.and_then(|written| written.first.as_ref()) {
                page.last_at = Some(first.at);
                // The end will ask where the task comes from.
                if !task.agent.is_own() {
                    self.hub.traces.keep_origin(key, task, first).await?;
                }
            }
            return Ok(());
        };
        page.last_at = end.status.timestamp.or(page.last_at);
        if !end.status.state.is_terminal() {
            return Ok(());
        }
        self.fold_end(page, row, end).await
    }

    /// Takes in the end of a task.
    async fn fold_end(&mut self, page: &mut Page, row: Row<'_>, end: &TaskStatusUpdate) -> Result<(), Error> {
        let Row { key, task, events, written } = row;
        let Some(agent) = page.agents.get(&task.agent).cloned() else { return Ok(()) };
        // It may have become one since the page was begun; most ends owe nothing.
        let may_be_remote = end.status.state != TaskState::Completed && self.hub.registry.may_be_remote(&task.agent);
        let ended = EndedTask { key, task, seq: events.last_seq(), end, may_be_remote };
        page.jobs.extend(ENDED.iter().filter_map(|observer| observer(&ended)));
        page.families.ended(key, task, events);
        let Completed { line, jobs } = self.hub.ceremonies.completed(key, task, end);
        page.journal.extend(line);
        page.jobs.extend(jobs);
        if task.agent.is_own() {
            return Ok(());
        }
        let first = written.and_then(|written| written.first.as_ref());
        let origin = match first {
            // Nobody asks again where a task comes from that has one row.
            Some(first) => Some(Arc::new(self.hub.traces.origin_of(task, first).await?)),
            None => self.hub.traces.origin(key, task, events).await?,
        };
        let Some(origin) = origin else { return Ok(()) };
        let said = match agent.declared.any() {
            true => Reported::read(&self.hub, key, task, events, end).await?,
            false => Reported::at_end(end),
        };
        let outcome = Outcome::new(&self.hub, task, &origin, end, said);
        let store = &*self.hub.parts.store;
        page.samples.extend(self.hub.experiments.sample(store, key, events, &outcome).await?);
        self.load_since(outcome.at).await?;
        // Only skills of the card have sums of their own: a caller may write any word.
        let known = |skill: &&str| agent.served.as_ref().is_some_and(|served| served.has_skill(skill));
        page.tally.add(&outcome, outcome.skill.as_deref().filter(known).unwrap_or("-"));
        if outcome.has_failed() {
            page.failures.push((outcome.agent.to_string(), Failure::of(task, &outcome)));
        }
        Ok(())
    }

    /// What an agent that declares effects says that it has changed.
    async fn fold_deltas(&self, page: &mut Page, row: Row<'_>, after: Seq) -> Result<(), Error> {
        let Row { key, task, events, .. } = row;
        let deltas = drift::reported(events, after);
        let Some(served) = page.agents.get(&task.agent).and_then(|agent| agent.served.clone()) else { return Ok(()) };
        if deltas.is_empty() {
            return Ok(());
        }
        let Some(origin) = self.hub.traces.origin(key, task, events).await? else { return Ok(()) };
        let skill = origin.skill.as_deref();
        let declared = served.manifest.skills.iter().find(|known| Some(known.id.as_str()) == skill);
        let observed = declared.and_then(|skill| drift::observe(task, &skill.id, &skill.effects, &deltas));
        page.observations.extend(observed);
        page.journal.extend(drift::line(task, skill, &deltas, self.hub.parts.clock.now()));
        Ok(())
    }

    /// A projector that is far behind adds to sums that are not in memory.
    async fn load_since(&mut self, at: Timestamp) -> Result<(), StoreError> {
        let begin = Timestamp(at.0 - at.0.rem_euclid(3_600_000));
        if begin >= self.since {
            return Ok(());
        }
        let mut older = Sums::default();
        for step in [HealthStep::Minute, HealthStep::Hour] {
            let stored = self.hub.parts.store.health(step, begin).await?;
            stored.iter().filter(|stored| stored.at < self.since).for_each(|stored| older.load(stored));
        }
        self.hub.health.write().insert(older);
        self.since = begin;
        Ok(())
    }
}

fn decode_status(line: &[u8]) -> Option<TaskStatusUpdate> {
    if !line.starts_with(br#"{"statusUpdate""#) {
        return None;
    }
    match Event::decode(line) {
        Ok(Event::StatusUpdate(update)) => Some(update),
        _ => None,
    }
}
