//! What a page says of tasks and those that have called them. A fan-out that waits for its children, and has left memory,
//! goes on when one of them does; children of a task that has ended are canceled, since nothing waits for them.

use std::collections::BTreeSet;

use switchboard_a2a::Timestamp;
use switchboard_engine::Seq;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::hub::NewJob;
use switchboard_engine::store::{EventRow, Phase, ServerStore, StoreError, TaskIdentity};

use crate::jobs::{CHILDREN_KIND, PARENT_KIND, family_job};

/// Parents of which a page says something.
#[derive(Debug, Default)]
pub(super) struct Families {
    /// A child of theirs has gone on, or has ended.
    moved: BTreeSet<TaskKey>,
    /// They have ended, or a child of theirs has begun, perhaps after their end.
    ended: BTreeSet<TaskKey>,
}

impl Families {
    /// Takes in a row of a task.
    pub(super) fn see(&mut self, task: &TaskIdentity, events: &EventRow, after: Seq) {
        let Some(parent) = task.parent() else { return };
        for (seq, line) in events.lines().filter(|(seq, _)| *seq > after) {
            if seq == Seq(1) {
                self.ended.insert(parent);
            } else if line.starts_with(br#"{"received""#) || line == br#""settled""# {
                self.moved.insert(parent);
            }
        }
    }

    /// Takes in the end of a task, which is in a row. One that was begun and ended by one row had called nobody before.
    pub(super) fn ended(&mut self, key: TaskKey, task: &TaskIdentity, events: &EventRow) {
        if events.first_seq > Seq(1) {
            self.ended.insert(key);
        }
        self.moved.extend(task.parent());
    }

    /// The jobs that are owed, as the tasks stand now: most have neither children nor a parent that waits.
    pub(super) async fn jobs(&self, store: &dyn ServerStore, now: Timestamp) -> Result<Vec<NewJob>, StoreError> {
        let mut jobs = Vec::new();
        if !self.moved.is_empty() {
            let heads = store.heads(self.moved.iter().copied().collect()).await?;
            let waiting = heads.iter().filter(|head| head.phase == Phase::Parked);
            jobs.extend(waiting.map(|head| family_job(PARENT_KIND, head.key, now)));
        }
        if !self.ended.is_empty() {
            let left = store.ended_with_live_children(self.ended.iter().copied().collect()).await?;
            jobs.extend(left.into_iter().map(|key| family_job(CHILDREN_KIND, key, now)));
        }
        Ok(jobs)
    }
}
